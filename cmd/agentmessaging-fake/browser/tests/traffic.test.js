import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

test('without calls the page says how to make one', async (t) => {
  const { fake, page } = await open(t);
  const main = page.locator('main');
  await wantText(main, /No calls yet/);
  await wantText(main, new RegExp(`export AGENT_MESSAGING_BASE_URL=${fake.base}\n\\s*export AGENT_MESSAGING_API_KEY=`));
  await wantText(main, /curl -sS "\$AGENT_MESSAGING_BASE_URL\/v1\/status"/);
});

test('a call shows as it happens, the newest first', async (t) => {
  const { fake, page } = await open(t);
  const rows = calls(page);
  await fake.call('GET', '/v1/status');
  await wantText(rows, /^200\s+GET\s*\/v1\s*\/status\s+key_000001\s+[\d.]+ (µs|ms)\s+\S+\s+now|\d+ s ago/);
  await fake.call('GET', '/v1/agents/agent_000404');
  await wantCount(rows, 2);
  await wantText(rows.first(), /^404\s+GET[^]*agent_000404[^]*not_found/);
  await wantText(page.locator('.sum'), '2 calls');
});

test('a call without a key, and one with an unknown key, show as such', async (t) => {
  const { fake, page } = await open(t);
  await fake.call('GET', '/v1/status', undefined, { key: 'nobody-issued-this' });
  await wantText(calls(page).first(), /^401[^]*unknown/);
  assert.ok(!(await page.content()).includes('nobody-issued-this'));
});

test('an open call shows the request and the reply', async (t) => {
  const { page } = await open(t, {
    prepare: (fake) => fake.agent({ system_prompt: 'Be brief.', metadata: { big: 12 } }, 'When do you open?'),
  });
  await calls(page).first().click();
  const detail = page.getByLabel('The open call');
  for (const want of [/Status\s+200/, /Key\s+key_000001/, /Agent\s+agent_000001/, /From\s+127\.0\.0\.1/, /Arrived\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/, /Trace id\s+trace_000002/]) {
    await wantText(detail, want);
  }
  await wantText(detail, /"text": "When do you open\?"/);
  await wantText(detail, /"reply_text": "/);
  await detail.getByText(/^\d+ headers$/).click();
  await wantText(detail, /Authorization: \[redacted\]/);
  await detail.getByRole('button', { name: 'Close' }).click();
  await wantCount(detail, 0);
});

test('the filters leave what fits, and go on as calls arrive', async (t) => {
  const { fake, page } = await open(t, {
    prepare: async (fake) => {
      await fake.agent({ customer_ref: 'blue-bicycle' }, 'one', 'two');
      await fake.call('GET', '/v1/status');
      await fake.call('GET', '/v1/agents/agent_000404');
    },
  });
  const sum = page.locator('.sum');
  const search = page.getByLabel('Filter calls by text');
  await wantText(sum, '5 calls');

  await search.fill('Blue-Bicycle');
  await wantText(sum, '1 of 5 calls');
  await search.fill('trace_000004 status');
  await wantText(sum, '1 of 5 calls');
  await search.fill('');
  await page.getByLabel('Status', { exact: true }).selectOption('4xx');
  await wantText(sum, '1 of 5 calls');
  await page.getByLabel('Status', { exact: true }).selectOption('');
  await page.getByLabel('Endpoint', { exact: true }).selectOption('POST /v1/agents/{agent_id}/messages');
  await wantText(sum, '2 of 5 calls');

  await fake.call('POST', '/v1/agents/agent_000001/messages', { text: 'three' });
  await fake.call('GET', '/v1/status');
  await wantText(sum, '3 of 7 calls');

  await search.fill('no such words');
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await wantText(sum, '7 calls');
});
