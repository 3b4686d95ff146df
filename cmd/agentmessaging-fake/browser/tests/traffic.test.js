import test from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { calls, open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

test('without calls the page says how to make one, and each shows as it happens', async (t) => {
  const { fake, page } = await open(t);
  const main = page.locator('main');
  await wantText(main, /No calls yet/);
  await wantText(main, new RegExp(`export AGENT_MESSAGING_BASE_URL=${fake.baseURL}\n\\s*export AGENT_MESSAGING_API_KEY=${fake.key}`));
  await wantText(main, /curl -sS "\$AGENT_MESSAGING_BASE_URL\/v1\/status"/);
  const rows = calls(page);
  await fake.call('GET', '/v1/status');
  await wantText(rows, /^200\s+GET\s*\/v1\/status\s+key_000001\s+[\d.]+\s(µs|ms)\s+\d\d:\d\d:\d\d\.\d{3}/);
  await fake.call('GET', '/v1/status', undefined, { key: 'nobody-issued-this' });
  await wantText(rows.first(), /^401[^]*unknown/);
  await wantText(page.locator('.sum'), '2 calls');
  assert.ok(!(await page.content()).includes('nobody-issued-this'));
});

test('a call is a row from its arrival on, with a clock that runs', async (t) => {
  const { fake, page } = await open(t, {
    prepare: (fake) => fake.control('POST', '/faults', { fault: { kind: 'latency', duration: '1h' } }),
  });
  fake.call('GET', '/v1/status').catch(() => {}); // the reset after the test ends it
  await wantText(page.getByLabel('Calls under way'), /^[1-9] s\s+GET\s*\/v1\/status\s+under way/);
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

test('the calls and the state are downloaded', async (t) => {
  const { page } = await open(t, { prepare: (fake) => fake.agent({}, 'Hello') });
  for (const [name, suggested] of [['Calls', 'calls.jsonl'], ['State', 'state.json']]) {
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name }).click()]);
    assert.equal(file.suggestedFilename(), suggested);
    assert.match(await readFile(await file.path(), 'utf8'), /agent_000001/);
  }
});

test('filter and open call are part of the address, and Back works', async (t) => {
  const { page } = await open(t, { prepare: (fake) => fake.agent({}, 'one', 'two') });
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
});

test('of 2,000 calls a window is shown, what is read keeps its place, and all are searched', async (t) => {
  const { fake, page } = await open(t, {
    args: ['--limits', 'off'],
    prepare: async (fake) => {
      await fake.agent({}, 'She said "hello" to me');
      await fake.many(1_998);
    },
  });
  const sum = page.locator('.sum');
  await wantText(sum, '2,000 calls');
  await wantCount(calls(page), 100);
  await page.locator('.rows').evaluate((list) => {
    const scrolled = new Promise((resolve) => list.addEventListener('scroll', resolve, { once: true }));
    list.scrollTop = 2000;
    return scrolled;
  });
  await fake.many(300); // more than a window
  await page.getByRole('button', { name: '300 new' }).waitFor();
  assert.match(await calls(page).first().getAttribute('href'), /2000/);
  await page.getByRole('button', { name: '300 new' }).click();
  await wantText(sum, '2,300 calls');

  const search = page.getByLabel('Filter calls by text');
  await search.fill('said "hello"');
  await wantText(sum, '1 of 2,300 calls');
  await calls(page).first().click();
  await wantText(page.getByLabel('The open call'), /She said/);
  await search.fill('byok');
  await wantText(sum, /^0 of/);
  await fake.call('GET', '/v1/byok');
  await wantCount(calls(page), 1);
  await search.fill('no such words');
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await page.getByRole('button', { name: 'Load older calls' }).click();
  await wantCount(calls(page), 200);
});
