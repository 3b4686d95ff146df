import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { many } from '../support/many.js';
import { wantText, wantCount } from '../support/expect.js';

test('without calls the page says how to make one', async (t) => {
  const { fake, page } = await open(t);
  const main = page.locator('main');
  await wantText(main, /No calls yet/);
  await wantText(main, new RegExp(`export AGENT_MESSAGING_BASE_URL=${fake.base}\n\\s*export AGENT_MESSAGING_API_KEY=${fake.key}`));
  await wantText(main, /curl -sS "\$AGENT_MESSAGING_BASE_URL\/v1\/status"/);
});

test('a call shows as it happens, the newest first', async (t) => {
  const { fake, page } = await open(t);
  const rows = calls(page);
  await fake.call('GET', '/v1/status');
  await wantText(rows, /^200\s+GET\s*\/v1\/status\s+key_000001\s+[\d.]+\s(µs|ms)\s+\d\d:\d\d:\d\d\.\d{3}/);
  await fake.call('GET', '/v1/agents/agent_000404');
  await wantCount(rows, 2);
  await wantText(rows.first(), /^404\s+GET[^]*agent_000404[^]*no agent has this identifier/);
  await wantText(page.locator('.sum'), '2 calls');
  await fake.call('GET', '/v1/status', undefined, { key: 'nobody-issued-this' });
  await wantText(rows.first(), /^401[^]*unknown/);
  assert.ok(!(await page.content()).includes('nobody-issued-this'));
});

test('the list is held under the mouse, and says what is new', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.call('GET', '/v1/agents/read_me') });
  const rows = calls(page);
  await rows.first().hover();
  const { y } = await rows.first().boundingBox();
  await fake.call('GET', '/v1/status');
  await page.getByRole('button', { name: '1 new' }).waitFor();
  assert.equal((await rows.first().boundingBox()).y, y);
  await rows.first().click();
  await wantText(page.getByLabel('The open call').getByRole('heading').first(), /read_me/);
  await page.getByRole('button', { name: 'Reset' }).first().hover(); // the list follows again
  await wantText(rows.first(), /status/);
  await wantText(page.getByLabel('The open call').getByRole('heading').first(), /read_me/);
});

test('filter and open call are part of the address, and Back works', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.agent({}, 'one', 'two') });
  await page.getByLabel('Endpoint', { exact: true }).selectOption('POST /v1/agents/{agent_id}/messages');
  await wantCount(calls(page), 2);
  await calls(page).first().click();
  await wantText(page.getByLabel('The open call'), /"text": "two"/);
  const shared = await page.context().newPage();
  await shared.goto(page.url());
  await wantText(shared.getByLabel('The open call'), /"text": "two"/);
  await wantText(shared.locator('.sum'), '2 of 3 calls');

  await calls(page).last().click();
  await wantText(page.getByLabel('The open call'), /"text": "one"/);
  await page.goBack();
  await wantText(page.getByLabel('The open call'), /"text": "two"/);
  await page.goBack();
  await wantCount(page.getByLabel('The open call'), 0);
  assert.equal(fake.page, `${new URL(page.url()).origin}/`);
});

test('a search finds what was typed, also in calls that the page does not hold, and these can be fetched', async (t) => {
  const { fake, page } = await open(t, {
    args: ['--limits', 'off'],
    prepare: async (fake) => {
      await fake.agent({}, 'She said "hello" to me');
      await many(fake, 300);
    },
  });
  await wantText(page.locator('.sum'), '302 calls');
  const search = page.getByLabel('Filter calls by text');
  await search.fill('said "hello"');
  await wantText(page.locator('.sum'), '1 of 302 calls');
  await calls(page).first().click();
  await wantText(page.getByLabel('The open call'), /She said/);

  await search.fill('no such words');
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  const older = page.getByRole('button', { name: 'Load older calls' });
  for (const shown of [200, 300, 302]) {
    await older.click();
    await wantCount(calls(page), shown);
  }
  await wantCount(older, 0);
});
