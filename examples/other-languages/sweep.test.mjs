// A sweep from outside Go: an application runs once for each call that it makes
// and each fault that fits the call, every time on an empty fake. What it
// reports is compared with what the service holds. ./run starts a fake for it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

const base = process.env.AGENT_MESSAGING_BASE_URL ?? 'http://127.0.0.1:8460';
const key = process.env.AGENT_MESSAGING_API_KEY ?? 'amk_fake_000001';
const control = (method, path, body) => call(method, `/_fake/v1${path}`, body);

async function call(method, path, body, bearer = process.env.AGENT_MESSAGING_FAKE_TOKEN) {
  const headers = { 'Content-Type': 'application/json', ...(bearer && { Authorization: `Bearer ${bearer}` }) };
  const response = await fetch(base + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(500) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return response.status === 204 ? undefined : response.json();
}

// The application: it reminds a customer, and throws where it could not.
async function remind() {
  const agent = await call('POST', '/v1/agents', { customer_ref: 'customer-7' }, key);
  await call('POST', `/v1/agents/${agent.agent_id}/messages`, { text: 'Your order is ready.' }, key);
}

async function run(rule) {
  await control('POST', '/reset');
  if (rule) await control('POST', '/faults', rule);
  const reported = await remind().then(() => 'reminded', () => 'failed');
  const { agents } = await control('GET', '/agents');
  const talks = await Promise.all(agents.map((a) => control('GET', `/agents/${a.agent_id}/conversation`)));
  const { calls } = await control('GET', '/calls');
  return { reported, arrived: talks.flatMap((talk) => talk.exchanges).length, calls };
}

test('whatever fails, the application does not say that it reminded where it did not', async (t) => {
  const undisturbed = await run();
  assert.deepEqual([undisturbed.reported, undisturbed.arrived], ['reminded', 1]);
  for (const { endpoint } of undisturbed.calls) {
    const { faults } = await control('GET', `/fitting-faults?endpoint=${encodeURIComponent(endpoint)}`);
    for (const { name, says } of faults) {
      await t.test(`${endpoint} ${name}: ${says}`, async () => {
        const rule = { fault: { kind: 'named', name }, match: { endpoint }, nth: 1 };
        const { reported, arrived } = await run(rule);
        assert.ok(reported === 'failed' || arrived === 1, `it ${reported}, and ${arrived} messages arrived`);
      });
    }
  }
});
