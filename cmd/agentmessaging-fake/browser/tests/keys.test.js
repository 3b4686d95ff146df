import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

const items = (page) => page.getByLabel('All keys').locator('[data-item]');

test('a new key is shown once, can be copied, and works', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys', permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByLabel('Plan of the new key').selectOption('pro');
  await page.getByRole('button', { name: 'Issue key' }).click();

  const dialog = page.getByRole('dialog', { name: 'The new key' });
  const key = await dialog.getByRole('region', { name: 'API key' }).innerText();
  await dialog.getByRole('button', { name: 'Copy API key' }).click();
  await wantText(dialog, /Copied/);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  await wantText(dialog, new RegExp(`export AGENT_MESSAGING_BASE_URL=${fake.base}\nexport AGENT_MESSAGING_API_KEY=${key}`));
  assert.equal((await fake.call('GET', '/v1/status', undefined, { key })).status, 200);

  await dialog.getByRole('button', { name: 'Done' }).click();
  await wantCount(dialog, 0);
  assert.ok(!(await page.content()).includes(key), 'the key is gone from the page');
  await wantText(items(page).nth(1), /key_000002\s+active\s+Plan pro/);
  await page.reload();
  await wantCount(items(page), 2);
  assert.ok(!(await page.content()).includes(key));
});

test('a key that the dashboard did not issue shows as such', async (t) => {
  const { page } = await open(t, { hash: '#/keys' });
  await page.getByLabel('Issued by the dashboard').uncheck();
  await page.getByRole('button', { name: 'Issue key' }).click();
  await page.getByRole('button', { name: 'Done' }).click();
  await wantText(items(page).nth(1), /not from the dashboard/);
});

test('a change of plan acts at once', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  const plan = page.getByLabel('Plan of key_000001');
  await plan.selectOption('free');
  await wantText(items(page).first(), /inactive/);
  assert.equal((await fake.call('GET', '/v1/status')).status, 402);
  await plan.selectOption('byok');
  await wantText(page.locator('[data-limit=key_minute]'), /of 600 left/);
  assert.equal((await fake.call('GET', '/v1/status')).status, 200);
});

test('a key is revoked, and that is taken back', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  await page.getByRole('button', { name: 'Revoke' }).click();
  await wantText(items(page).first(), /revoked/);
  assert.equal((await fake.call('GET', '/v1/status')).status, 401);
  await page.getByLabel('The open key').getByRole('button', { name: 'Reinstate' }).waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByLabel('The open key').getByRole('button', { name: 'Revoke' }).waitFor();
  assert.equal((await fake.call('GET', '/v1/status')).status, 200);
});

test('the provider key shows as metadata', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  const block = page.getByLabel('Provider key');
  await wantText(block, /None is stored/);
  await fake.call('PUT', '/v1/byok', { provider: 'anthropic', api_key: 'sk-not-to-be-seen', label: 'main', model: 'large' });
  await wantText(block, /Provider\s+anthropic\s+Label\s+main\s+Model\s+large[^]*Fingerprint\s+\S+/);
  assert.ok(!(await page.content()).includes('sk-not-to-be-seen'));
});

test('BYOK is switched off and on', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  const store = () => fake.call('PUT', '/v1/byok', { provider: 'openai', api_key: 'k' });
  const on = page.getByRole('switch', { name: 'BYOK is available' });
  await on.uncheck();
  await wantText(page.locator('.notice'), /answer 503/);
  assert.equal((await store()).status, 503);
  await fake.control('PUT', 'byok', { available: true });
  await page.locator('[role=switch]:checked').waitFor();
  assert.equal((await store()).status, 200);
});
