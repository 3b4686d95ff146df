import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

const gauge = (page, limit) => page.locator(`[data-limit=${limit}]`);
const items = (page) => page.getByLabel('All keys').locator('.item');

test('a new key is shown once, can be copied, and works', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  await page.getByLabel('Plan of the new key').selectOption('pro');
  await page.getByRole('button', { name: 'Issue key' }).click();

  const issued = page.getByLabel('The new key', { exact: true });
  const key = await issued.getByRole('region', { name: 'API key' }).innerText();
  await issued.getByRole('button', { name: 'Copy API key' }).click();
  await wantText(page.locator('.notice.done'), /Copied: API key/);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  await wantText(issued, new RegExp(`export AGENT_MESSAGING_BASE_URL=${fake.base}\nexport AGENT_MESSAGING_API_KEY=${key}`));
  assert.equal((await fake.call('GET', '/v1/status', undefined, { key })).status, 200);

  await items(page).first().click();
  await wantCount(issued, 0);
  assert.ok(!(await page.content()).includes(key), 'the key is gone from the page');
  await wantText(items(page).nth(1), /key_000002\s+active\s+Plan pro/);
  await page.reload();
  await wantCount(items(page), 2);
  assert.ok(!(await page.content()).includes(key));
});

// The seven limits of interface 8.1, in its words and order.
const preview = [
  ['key_minute', '60'],
  ['ip_minute', '120'],
  ['key_day', '1,000'],
  ['agent_create_key_day', '50'],
  ['agent_create_ip_minute', '10'],
  ['byok_set_key_hour', '5'],
  ['warmup_key_hour', '3'],
];

test('each limit shows what is left, can be exhausted, says when it opens, and opens', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  await wantCount(page.locator('.gauge'), 7);
  for (const [limit, max] of preview) {
    await wantText(gauge(page, limit), new RegExp(`${max} of ${max} left`));
    await gauge(page, limit).getByRole('button').click();
    await wantText(gauge(page, limit), new RegExp(`\\n0 of ${max} left, opens in \\d`));
  }
  const refused = await fake.call('POST', '/v1/warmup'); // three limits refuse it; the one that opens last is named
  assert.deepEqual([refused.status, refused.body.limit_key], [429, 'key_day']);

  const { limits } = await fake.control('GET', 'keys/key_000001');
  const { now } = await fake.control('GET', 'clock');
  const left = (Date.parse(limits[0].opens_at) - Date.parse(now)) / 1000;
  await fake.control('POST', 'clock', { duration: `${left - 1}s` });
  await wantText(gauge(page, 'key_minute'), /60 of 60 left\s/);
});

