// Tests of an application in Node. ./run runs them.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { Fake } from './fake.mjs';

let fake;
before(async () => (fake = await Fake.start()));
beforeEach(() => fake.reset());
afterEach(async (t) => t.passed || console.log(await fake.story())); // Node 20.12 or later knows whether it passed
after(() => fake.stop());

async function call(method, path, body) {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${fake.key}` };
  const resp = await fetch(fake.baseURL + path, { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(500) });
  if (!resp.ok) throw new Error(`${method} ${path}: ${resp.status} ${await resp.text()}`);
  return resp.json();
}

// The application: it reminds a customer, and throws where it could not.
async function remind() {
  const agent = await call('POST', '/v1/agents', { customer_ref: 'customer-7' });
  return call('POST', `/v1/agents/${agent.agent_id}/messages`, { text: 'Your order is ready.' });
}

test('an agent answers as scripted, and what was sent can be read', async () => {
  await fake.control('POST', '/replies', { match: { text_containing: 'order' }, replies: [{ text: 'At last.' }] });
  const reply = await remind();
  assert.equal(reply.reply_text, 'At last.');

  const { calls } = await fake.control('GET', '/calls?timeout=5s&text_containing=order');
  assert.equal(calls[0].trace_id, reply.trace_id);
  assert.deepEqual(JSON.parse(calls[0].body), { text: 'Your order is ready.' });
});

// A sweep from outside Go: the application runs once for each call that it makes and each
// fault that fits the call, every time on an empty fake. What it reports is compared with
// what the service holds.
test('whatever fails, the application does not say that it reminded where it did not', async (t) => {
  await remind();
  const { calls } = await fake.control('GET', '/calls');
  assert.equal(calls.length, 2);
  for (const { endpoint } of calls) {
    const { faults } = await fake.control('GET', `/fitting-faults?endpoint=${encodeURIComponent(endpoint)}`);
    for (const { name, says } of faults) {
      await t.test(`${endpoint} ${name}: ${says}`, async () => {
        await fake.reset();
        await fake.control('POST', '/faults', { fault: { kind: 'named', name }, match: { endpoint }, nth: 1 });
        const reported = await remind().then(() => 'reminded', () => 'failed');
        const { agents } = await fake.control('GET', '/agents');
        const talks = await Promise.all(agents.map((a) => fake.control('GET', `/agents/${a.agent_id}/conversation`)));
        const arrived = talks.flatMap((talk) => talk.exchanges).length;
        assert.ok(reported === 'failed' || arrived === 1, `it ${reported}, and ${arrived} messages arrived`);
      });
    }
  }
});
