import test from 'node:test';
import { calls, open } from '../support/browser.js';
import { wantInView, wantText } from '../support/expect.js';

const messages = '/v1/agents/agent_000001/messages';
const gateway = { kind: 'raw_answer', content_type: 'text/html', body: '<h1>Bad gateway</h1>' };

// Each row is what goes wrong, the sentence that has to explain it in the newest row of
// the list, and the call. Key 2 is a second key.
const failures = [
  ['401 unknown', /401: this fake did not issue/, (f) => f.call('GET', '/v1/status', undefined, { key: 'nobody' })],
  ['401 revoked', /401: key_000002 was revoked/, (f) => f.control('PATCH', 'keys/key_000002', { revoked: true }).then(() => f.call('GET', '/v1/status', undefined, f.second))],
  ['402', /402: key_000002 is on a plan that is not active/, (f) => f.control('PATCH', 'keys/key_000002', { revoked: false, plan: 'free' }).then(() => f.call('POST', '/v1/warmup', undefined, f.second))],
  ['403', /403: key_000003 was not issued through the dashboard/, async (f) => f.call('GET', '/v1/byok', undefined, await f.control('POST', 'keys', { dashboard: false }))],
  ['404 of another key', /404: the agent belongs to key_000001/, async (f) => f.call('GET', '/v1/agents/agent_000001', undefined, await f.control('POST', 'keys', {}))],
  ['429 of the key', /429: Exhaust closed key_minute for key_000001; it opens in/, (f) => exhausted(f, 'key_minute')],
  ['429 of the operation', /429: Exhaust closed warmup_key_hour for key_000001; it opens in/, (f) => exhausted(f, 'warmup_key_hour')],
  ['409', /409: no BYOK configuration was ever set/, (f) => f.call('POST', '/v1/warmup', { mode: 'byok' })],
  ['503', /503: the BYOK store is not available/, (f) => f.control('PUT', 'byok', { available: false }).then(() => f.call('PUT', '/v1/byok', { provider: 'openai', api_key: 'sk' }))],
  ['lost reply', /reset[^]*LoseReply\(ResetConnection\(\)\) ended the connection without an answer; the agent has the message/, (f) => faulty(f, { kind: 'lose_reply', how: { kind: 'reset_connection' } })],
  ['malformed body sent', /400: body: must be one JSON document/, (f) => f.call('POST', messages, '{"text": "a')],
  ['malformed body received', /RawAnswer\(200[^]*What arrived is not JSON/, (f) => faulty(f, { ...gateway, status: 200 })],
  ['stalled body', /DripReply\(4, 1h0m0s\) sent 4 bytes at a time[^]*the agent has the message. The client left after/, (f) => faulty(f, { kind: 'drip_reply', bytes: 4, every: '1h' }, AbortSignal.timeout(50))],
  ['5xx of a proxy', /RawAnswer\(502, 20 characters\) answered in place of the service/, (f) => faulty(f, { ...gateway, status: 502 })],
  ['latency beyond the deadline', /client left[^]*The client left after .*, before the call reached the service/, (f) => faulty(f, { kind: 'latency', duration: '1h' }, AbortSignal.timeout(50))],
];

async function exhausted(fake, limit) {
  await fake.control('POST', `keys/key_000001/limits/${limit}/exhaust`);
  await fake.call('POST', '/v1/warmup');
}

async function faulty(fake, fault, signal) {
  await fake.control('POST', 'faults', { fault, times: 1 });
  await fake.call('POST', messages, { text: 'Hello' }, { signal }).catch(() => {});
}

test('each failure is explained in the list of a narrow page, without a click', async (t) => {
  const { fake, page } = await open(t, { width: 360, height: 740 });
  await fake.agent();
  fake.second = await fake.control('POST', 'keys', {});
  for (const [what, sentence, fail] of failures) {
    await t.test(what, async () => {
      await fail(fake);
      await wantText(calls(page).first(), sentence);
      await wantInView(calls(page).first());
      await fake.control('POST', 'clock', { duration: '24h' }); // opens the limits
    });
  }
});
