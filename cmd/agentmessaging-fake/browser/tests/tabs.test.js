import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open, live } from '../support/browser.js';
import { wantCount, eventually } from '../support/expect.js';

test('ten tabs share one stream, and another takes over where its tab is closed', async (t) => {
  const { fake, page } = await open(t);
  const context = page.context();
  let streams = 0;
  context.on('request', (request) => request.url().includes('/calls/stream') && streams++);
  const tabs = [];
  for (let i = 0; i < 9; i++) {
    tabs.push(await context.newPage());
    await tabs[i].goto(fake.page);
    await live(tabs[i]);
  }
  assert.equal(streams, 0);
  await fake.call('GET', '/v1/status');
  for (const tab of [page, ...tabs]) await wantCount(calls(tab), 1);

  await page.close();
  await eventually(tabs[8], async () => assert.equal(streams, 1));
  await fake.call('GET', '/v1/byok');
  for (const tab of tabs) await wantCount(calls(tab), 2);
});
