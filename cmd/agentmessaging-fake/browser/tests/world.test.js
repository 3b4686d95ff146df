import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open, live } from '../support/browser.js';
import { wantText, wantCount, eventually } from '../support/expect.js';

test('the clock moves by a minute, an hour and a day', async (t) => {
  const { fake, page } = await open(t);
  const clock = page.getByRole('group', { name: 'Clock of the fake' });
  for (const [name, advanced] of [['+1 min', '+1 min'], ['+1 h', '+1 h 1 min'], ['+1 day', '+1 d 1 h']]) {
    await clock.getByRole('button', { name, exact: true }).click();
    await wantText(clock.locator('.advanced'), advanced);
  }
  assert.equal((await fake.control('GET', 'clock')).advanced_seconds, 86400 + 3600 + 60);
  await fake.call('GET', '/v1/status');
  await wantText(calls(page), /now|s ago/); // by the fake's clock
});

test('reset asks first, and empties the world', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.agent({}, 'Hello') });
  const dialog = page.getByRole('dialog', { name: 'Reset the world default?' });
  await wantCount(calls(page), 2);
  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await wantCount(dialog, 0);
  assert.equal((await fake.control('GET', 'agents')).agents.length, 1);

  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Reset' }).click();
  await wantText(page.locator('main'), /No calls yet/);
  assert.equal((await fake.control('GET', 'agents')).agents.length, 0);
  assert.equal((await fake.call('GET', '/v1/status')).status, 200);
  await wantCount(calls(page), 1);
});

test('with a second world there is a switch, and each shows its own', async (t) => {
  let suite;
  const { fake, page } = await open(t, {
    prepare: async (fake) => {
      await fake.agent({ customer_ref: 'of-the-default' });
      suite = await fake.control('POST', '/worlds', { name: 'suite-a' });
      await fake.call('GET', '/v1/status', undefined, { key: suite.key.key });
    },
  });
  await wantText(calls(page), /POST/);
  await page.getByLabel('World').selectOption('suite-a');
  await live(page);
  await wantText(calls(page), /GET/);
  await page.getByRole('link', { name: /Agents/ }).click();
  await wantText(page.locator('main'), /No agents yet/);

  await fake.call('POST', '/v1/agents', {}, { key: suite.key.key });
  await wantCount(page.getByLabel('All agents').locator('[data-item]'), 1);
  assert.equal((await fake.control('GET', 'agents')).agents.length, 1);
});

test('without a second world there is no switch', async (t) => {
  const { page } = await open(t);
  await eventually(page, async () => assert.equal(await page.getByLabel('World').count(), 0));
});
