import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

const items = (page) => page.getByLabel('All keys').locator('.item');

test('a new key is shown once, can be copied, and works', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  await page.getByLabel('Plan of the new key').selectOption('pro');
  await page.getByRole('button', { name: 'Issue key' }).click();

  const issued = page.getByLabel('The new key', { exact: true });
  const key = await issued.getByRole('region', { name: 'API key' }).innerText();
  await issued.getByRole('button', { name: 'Copy API key' }).click();
  await wantText(page.locator('.notice.good'), /Copied: API key/);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  await wantText(issued, new RegExp(`export AGENT_MESSAGING_BASE_URL=${fake.baseURL}\nexport AGENT_MESSAGING_API_KEY=${key}`));
  assert.equal((await fake.call('GET', '/v1/status', undefined, { key })).status, 200);

  await items(page).first().click();
  await wantCount(issued, 0);
  assert.ok(!(await page.content()).includes(key), 'the key is gone from the page');
  await wantText(items(page).nth(1), /key_000002\s+active\s+Plan pro/);
  await page.reload();
  await wantCount(items(page), 2);
  assert.ok(!(await page.content()).includes(key));
});

test('each limit shows what is left; one can be exhausted, says when it opens, and opens', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  const minute = page.locator('[data-limit=key_minute]');
  await wantText(page.locator('.gauge'), /60 of 60 left[^]*120 of 120[^]*1,000 of 1,000[^]*50 of 50[^]*10 of 10[^]*5 of 5[^]*3 of 3 left/);
  await fake.agent();
  await wantText(minute, /59 of 60 left/);
  await minute.getByRole('button').click();
  await wantText(minute, /0 of 60 left, opens in \d/);

  const { limits } = await fake.control('GET', '/keys/key_000001');
  const { now } = await fake.control('GET', '/clock');
  const left = (Date.parse(limits[0].opens_at) - Date.parse(now)) / 1000;
  await fake.control('POST', '/clock', { duration: `${left - 1}s` });
  await wantText(minute, /60 of 60 left\s/); // a second later, by itself
});
