import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { populate } from '../support/content.js';
import { wantText, eventually } from '../support/expect.js';

test('an agent shows what it was made with, and its conversation as it grows', async (t) => {
  const { fake, page } = await open(t, {
    hash: '#/agents/agent_000001',
    prepare: (fake) => fake.agent({ system_prompt: 'Be brief.', customer_ref: 'bakery', metadata: { shop: 7 }, llm: { tier: 'smart', base_url: 'https://ana:pw@llm.example/v1' } }, 'When do you open?'),
  });
  const [about, log, box] = [page.getByLabel('About the agent'), page.getByRole('log'), page.getByLabel('Message')];
  const wantBox = (text) => eventually(page, async () => assert.equal(await box.inputValue(), text));
  await wantText(about, /Customer\s+bakery[^]*System prompt\s+Be brief\.[^]*"shop": 7[^]*tier\s+smart\s+base_url\s+https:\/\/\[redacted\]@llm\.example\/v1/);
  await fake.call('POST', '/v1/agents/agent_000001/messages', { text: 'Thank you.' });
  await wantText(log, /When do you open\?[^]*Thank you\./);

  await box.fill('Good morning\nand welcome'); // a message that is typed is a real call
  await page.getByRole('button', { name: 'Send' }).click();
  await wantText(log, /Good morning\nand welcome[^]*You wrote/);
  await wantText(page.getByLabel('Conversation', { exact: true }).locator('.sum'), '3 exchanges');
  await wantBox('');

  await fake.control('POST', '/keys/key_000001/limits/key_minute/exhaust');
  await box.fill('Anybody there?'); // one that is refused comes back, with the reason
  await box.press('Enter');
  const notice = page.locator('.notice.bad');
  await wantText(notice, /The service answered 429: rate_limited, key_minute/);
  await wantBox('Anybody there?');
  const [below, above] = [await notice.boundingBox(), await box.boundingBox()];
  assert.ok(above.y + above.height <= below.y, 'the notice covers the composer');
});

test('the story of an agent shows what was tried, refused, lost and sent again', async (t) => {
  const { page } = await open(t, { hash: '#/agents/agent_000001', prepare: populate });
  await wantText(page.getByRole('log'), /429[^]*rye bread[^]*attempt 2[^]*A cake[^]*LoseReply[^]*A cake[^]*attempt 2/);
  await page.getByRole('log').locator('a.attempt').first().click();
  await wantText(page.getByRole('list', { name: 'Attempts' }), /^429[^]*200/);
  await wantText(page.getByRole('note'), /The client came back after .*, although Retry-After said 1\./);
});

test('a long conversation shows its end, and stays where it is read', async (t) => {
  const { fake, page } = await open(t, {
    args: ['--limits', 'off'],
    hash: '#/agents/agent_000001',
    prepare: (fake) => fake.agent({}, ...Array.from({ length: 101 }, (_, i) => `number ${i}`)),
  });
  const log = page.getByRole('log');
  await wantText(log, /1 earlier exchange not shown[^]*number 1\n/);
  const y = async (text) => (await log.getByText(text, { exact: true }).boundingBox()).y;
  assert.ok((await y('number 100')) < (await page.getByLabel('Message').boundingBox()).y);
  await log.getByText('number 30', { exact: true }).scrollIntoViewIfNeeded();
  const before = await y('number 30');
  await fake.call('POST', '/v1/agents/agent_000001/messages', { text: 'meanwhile' });
  await wantText(log, /meanwhile/);
  assert.ok(Math.abs((await y('number 30')) - before) < 2);
});
