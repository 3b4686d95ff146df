import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { calls, open } from '../support/browser.js';
import { programPath } from '../support/fake.js';
import { wantText } from '../support/expect.js';

const run = promisify(execFile);

test('issue a key, run the quickstart, exhaust a limit, advance a day', async (t) => {
  const { page } = await open(t, { hash: '#/keys' });
  await page.getByRole('button', { name: 'Issue key' }).click();
  const exports = await page.getByRole('region', { name: 'Environment' }).innerText();
  const env = Object.fromEntries(exports.split('\n').map((line) => line.replace('export ', '').split(/=(.*)/s)));
  await page.getByRole('button', { name: 'Done' }).click();

  const quickstart = () => run(programPath('quickstart'), { env: { ...env, PATH: process.env.PATH } });
  assert.match((await quickstart()).stdout, /agent: +agent_000001 \(active\)/);

  const gauge = page.locator('[data-limit=key_day]');
  await wantText(gauge, /998 of 1,000 left\s+open/);
  await gauge.getByRole('button', { name: 'Exhaust' }).click();
  await wantText(gauge, /0 of 1,000 left\s+shut\s+opens in \d+ h/);
  await assert.rejects(quickstart(), /rate_limited|limit key_day/);

  await page.getByRole('link', { name: /Traffic/ }).click();
  const rows = calls(page);
  await wantText(rows.first(), /^429[^]*\/v1\/?\s*\/agents[^]*key_000002/);
  await rows.nth(1).click();
  await wantText(page.getByLabel('The open call'), /When do you open\?/);

  await page.getByRole('button', { name: '+1 day' }).click();
  await wantText(page.locator('.advanced'), '+1 d');
  await page.getByRole('link', { name: /Keys/ }).click();
  await page.getByRole('link', { name: /key_000002/ }).click();
  await wantText(gauge, /1,000 of 1,000 left\s+open/);
  assert.match((await quickstart()).stdout, /agent: +agent_000002/);
  await wantText(gauge, /998 of 1,000 left\s+open/);
});
