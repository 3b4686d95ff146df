// A sweep from outside Go: an application runs once for each call that it makes
// and each fault that fits the call, every time on an empty fake. What it
// reports is compared with what the service holds. ./run runs it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fake } from './fake.mjs';

let fake;
before(async () => (fake = await Fake.start()));
after(() => fake.stop());

async function call(method, path, body) {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${fake.key}` };
  const resp = await fetch(fake.baseURL + path, { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(500) });
  if (!resp.ok) throw new Error(`${method} ${path}: ${resp.status}`);
  return resp.json();
}

// The application: it reminds a customer, and throws where it could not.
async function remind() {
  const agent = await call('POST', '/v1/agents', { customer_ref: 'customer-7' });
  await call('POST', `/v1/agents/${agent.agent_id}/messages`, { text: 'Your order is ready.' });
}

async function run(rule) {
  await fake.reset();
  if (rule) await fake.control('POST', '/faults', rule);
  const reported = await remind().then(() => 'reminded', () => 'failed');
  const { agents } = await fake.control('GET', '/agents');
  const talks = await Promise.all(agents.map((a) => fake.control('GET', `/agents/${a.agent_id}/conversation`)));
  const { calls } = await fake.control('GET', '/calls');
  return { reported, arrived: talks.flatMap((talk) => talk.exchanges).length, calls };
}

test('whatever fails, the application does not say that it reminded where it did not', async (t) => {
  const withoutFault = await run();
  assert.deepEqual([withoutFault.reported, withoutFault.arrived], ['reminded', 1]);
  for (const { endpoint } of withoutFault.calls) {
    const { faults } = await fake.control('GET', `/fitting-faults?endpoint=${encodeURIComponent(endpoint)}`);
    for (const { name, says } of faults) {
      await t.test(`${endpoint} ${name}: ${says}`, async () => {
        const rule = { fault: { kind: 'named', name }, match: { endpoint }, nth: 1 };
        const { reported, arrived } = await run(rule);
        assert.ok(reported === 'failed' || arrived === 1, `it ${reported}, and ${arrived} messages arrived`);
      });
    }
  }
});
