import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open, live } from '../support/browser.js';
import { startFake } from '../support/fake.js';
import { wantText, wantCount } from '../support/expect.js';

test('the page says that the program is gone, and comes back with it', async (t) => {
  const { fake, page } = await open(t, { args: [], prepare: (fake) => fake.agent({}, 'before') });
  await wantCount(calls(page), 2);
  await fake.stop();
  await page.locator('[data-phase=waiting]').waitFor();
  await wantText(page.locator('[data-phase]'), 'Disconnected');
  await page.getByRole('button', { name: '+1 h', exact: true }).click();
  await wantText(page.locator('.notice.bad'), /cannot be reached/);

  const again = await startFake('--addr', new URL(fake.baseURL).host); // its calls count from 1
  t.after(() => again.stop('SIGKILL'));
  await again.call('GET', '/v1/status');
  await live(page);
  await wantText(calls(page), /GET/); // it was made before the page came back
  await again.call('GET', '/v1/byok');
  await wantCount(calls(page), 2);
});

test('the page asks for the token, once', async (t) => {
  const token = 'a-token-for-this-test';
  const { fake, page } = await open(t, { args: ['--addr', '0.0.0.0:0', '--allow-remote', '--token', token] });
  const ask = page.getByRole('form', { name: 'Control token' });
  await ask.getByLabel('Token').fill('wrong');
  await ask.getByRole('button', { name: 'Continue' }).click();
  await wantText(page.getByRole('main'), /That was not the token\./);
  await ask.getByLabel('Token').fill(token);
  await ask.getByRole('button', { name: 'Continue' }).click();
  await live(page);
  await fake.call('GET', '/v1/status');
  await wantCount(calls(page), 1);

  await page.reload();
  await live(page);
  assert.equal(await ask.count(), 0);
  assert.equal(await page.evaluate(() => localStorage.length + document.cookie.length), 0);
});

test('a call that comes while the page loads is not lost', async (t) => {
  const { fake, page } = await open(t);
  const other = await page.context().newPage();
  await other.goto(fake.baseURL);
  await live(other);
  await page.route(/calls\?limit=100$/, async (route) => {
    const response = await route.fetch();
    await fake.call('GET', '/v1/status'); // which this answer has not
    await wantCount(calls(other), 1);
    await route.fulfill({ response });
  }, { times: 1 });
  await page.reload();
  await wantCount(calls(page), 1);
});

test('a page that nobody sees has no stream, and catches up', async (t) => {
  const { fake, page } = await open(t);
  let streams = 0;
  page.on('request', (request) => request.url().endsWith('/calls/stream') && streams++);
  await show(page, false);
  await fake.call('GET', '/v1/status');
  await show(page, true);
  await wantCount(calls(page), 1);
  assert.equal(streams, 1);
});

// show has the page believe that it is seen, or hidden.
function show(page, seen) {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, !seen);
}

test('reset asks first, and empties the fake', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.agent({}, 'Hello') });
  const dialog = page.getByRole('dialog', { name: 'Reset the fake?' });
  await wantCount(calls(page), 2);
  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  assert.equal((await fake.control('GET', '/agents')).agents.length, 1);

  await page.getByRole('banner').getByRole('button', { name: 'Reset' }).click();
  await dialog.getByRole('button', { name: 'Reset' }).click();
  await wantText(page.locator('main'), /No calls yet/);
  await page.getByText('The fake is as it was when it started.').waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await wantCount(page.getByRole('button', { name: 'Dismiss' }), 0);
  assert.equal((await fake.control('GET', '/agents')).agents.length, 0);
  assert.equal((await fake.call('GET', '/v1/status')).status, 200);
  await wantCount(calls(page), 1);
});
