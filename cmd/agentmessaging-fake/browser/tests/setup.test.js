import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

test('reset asks first, and empties the fake', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.agent({}, 'Hello') });
  const dialog = page.getByRole('dialog', { name: 'Reset the fake?' });
  await wantCount(calls(page), 2);
  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  assert.equal((await fake.control('GET', 'agents')).agents.length, 1);

  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Reset' }).click();
  await wantText(page.locator('main'), /No calls yet/);
  await page.getByText('The fake is empty again.').waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await wantCount(page.getByRole('button', { name: 'Dismiss' }), 0);
  assert.equal((await fake.control('GET', 'agents')).agents.length, 0);
  assert.equal((await fake.call('GET', '/v1/status')).status, 200);
  await wantCount(calls(page), 1);
});

test('a call is sent again, and edited', async (t) => {
  const { page } = await open(t, { prepare: (fake) => fake.agent({}, 'as it was') });
  await calls(page).first().click();
  const detail = page.getByLabel('The open call');
  await detail.getByRole('button', { name: 'Send again' }).click();
  await wantText(page.locator('.notice.done'), /the service answered 200/);
  await detail.locator('textarea').fill('{"text":5}');
  await detail.getByRole('button', { name: 'Send again' }).click();
  await wantText(page.locator('.notice.done'), /the service answered 400/);
});

test('the traffic shows what the key has spent', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.call('GET', '/v1/status', undefined, { key: 'nobody' }) });
  const strip = page.locator('.strip');
  await wantText(strip, /nothing spent/);
  const top = () => page.locator('.rows').boundingBox().then(({ y }) => y);
  const before = await top();
  await fake.agent();
  await wantText(strip, /per minute\s*59 left/);
  await fake.control('POST', 'keys/key_000001/limits/key_minute/exhaust');
  await wantText(strip, /per minute\s*opens in/);
  assert.equal(await top(), before, 'the list has moved');
});
