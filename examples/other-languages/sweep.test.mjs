// A sweep from outside Go: an application runs once for each call that it makes
// and each fault that fits the call, every time in a world of its own. What it
// tells is compared with what the service holds. ./run starts a fake for it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

const base = process.env.AGENT_MESSAGING_BASE_URL ?? 'http://127.0.0.1:8460';

async function call(method, path, body, bearer = process.env.AGENT_MESSAGING_FAKE_TOKEN) {
  const headers = { 'Content-Type': 'application/json', ...(bearer && { Authorization: `Bearer ${bearer}` }) };
  const response = await fetch(base + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(500) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return response.status === 204 ? undefined : response.json();
}

// The application: it reminds a customer, and throws where it could not.
async function remind(key) {
  const agent = await call('POST', '/v1/agents', { customer_ref: 'customer-7' }, key);
  await call('POST', `/v1/agents/${agent.agent_id}/messages`, { text: 'Your order is ready.' }, key);
}

async function run(name, rule) {
  const world = `/_fake/v1/worlds/${name}`;
  const { key } = await call('POST', '/_fake/v1/worlds', { name });
  try {
    if (rule) await call('POST', `${world}/faults`, rule);
    const told = await remind(key).then(() => 'reminded', () => 'failed');
    const { agents } = await call('GET', `${world}/agents`);
    const talks = await Promise.all(agents.map((a) => call('GET', `${world}/agents/${a.agent_id}/conversation`)));
    const { calls } = await call('GET', `${world}/calls`);
    return { told, arrived: talks.flatMap((talk) => talk.exchanges).length, calls };
  } finally {
    await call('DELETE', world);
  }
}

test('whatever fails, the application does not say that it reminded where it did not', async (t) => {
  const undisturbed = await run(`sweep-${process.pid}`);
  assert.deepEqual([undisturbed.told, undisturbed.arrived], ['reminded', 1]);
  for (const [i, { endpoint }] of undisturbed.calls.entries()) {
    const { faults } = await call('GET', `/_fake/v1/worlds/default/fitting-faults?endpoint=${encodeURIComponent(endpoint)}`);
    for (const { name, says } of faults) {
      await t.test(`${endpoint} ${name}: ${says}`, async () => {
        const rule = { fault: { kind: 'named', name }, match: { endpoint }, nth: 1 };
        const { told, arrived } = await run(`sweep-${process.pid}-${i}-${name.replaceAll('_', '-')}`, rule);
        assert.ok(told === 'failed' || arrived === 1, `it ${told}, and ${arrived} messages arrived`);
      });
    }
  }
});
