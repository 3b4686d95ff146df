import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

const form = (page) => page.getByRole('form', { name: 'New rule' });
const rules = (page) => page.locator('.rule');

test('every kind of rule can be turned on as the form comes', async (t) => {
  const { fake, page } = await open(t, { hash: '#/rules' });
  await wantText(page.getByLabel('In force'), /Every call goes through/);
  const kinds = await form(page).getByLabel('Kind').locator('option').evaluateAll((options) => options.map((o) => o.value));
  assert.equal(kinds.length, 13);
  for (const [i, kind] of kinds.entries()) {
    await form(page).getByLabel('Kind').selectOption(kind);
    if (kind === 'reply') await form(page).getByLabel('Replies').fill('First.\nSecond.');
    await form(page).getByRole('button', { name: 'Turn on' }).click();
    await wantCount(rules(page), i + 1);
  }
  const { faults } = await fake.control('GET', '/faults');
  assert.deepEqual([...faults.map((f) => f.fault.kind), 'reply'], kinds);
});

test('a scripted reply has texts, warnings and an error, for some messages', async (t) => {
  const { fake, page } = await open(t, { hash: '#/rules', prepare: (fake) => fake.agent() });
  await form(page).getByLabel('Kind').selectOption('reply');
  await form(page).getByLabel('Replies').fill('It ships today.');
  await form(page).getByLabel('Warnings').fill('slow');
  await form(page).getByLabel('Then an error status').fill('404');
  await form(page).getByText('Only some calls').click();
  await form(page).getByLabel('Text containing').fill('order');
  await form(page).getByRole('button', { name: 'Turn on' }).click();
  await wantText(rules(page), /It ships today\. · 404\s*0 hits\s*With a text containing order\./);
  const say = (text) => fake.call('POST', '/v1/agents/agent_000001/messages', { text });
  const { body } = await say('my order');
  assert.deepEqual([body.reply_text, body.warnings], ['It ships today.', ['slow']]);
  assert.equal((await say('my order')).status, 404);
});

test('a fault acts, counts its hits, and goes', async (t) => {
  const { fake, page } = await open(t, { hash: '#/rules' });
  await form(page).getByLabel('Kind').selectOption('answer');
  await form(page).getByLabel('Status', { exact: true }).fill('502');
  await form(page).getByLabel('Endpoint').selectOption('GET /v1/status');
  await form(page).getByLabel('Times').fill('3');
  await form(page).getByLabel('Key').fill('key_000001');
  await form(page).getByRole('button', { name: 'Turn on' }).click();
  await wantText(rules(page), /0 hits\s+On GET \/v1\/status, with key key_000001, 3 times\./);
  assert.equal((await fake.call('GET', '/v1/status')).status, 502);
  await wantText(rules(page), /1 hit\s/);
  await rules(page).getByRole('button', { name: /^Remove/ }).click();
  await wantCount(rules(page), 0);
  assert.equal((await fake.call('GET', '/v1/status')).status, 200);
});
