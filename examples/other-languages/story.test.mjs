// A small story over the service and the fake's control interface, in Node
// without any package. AGENT_MESSAGING_BASE_URL is the address of a fake that
// runs; ./run starts one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

const base = process.env.AGENT_MESSAGING_BASE_URL ?? 'http://127.0.0.1:8460';
const token = process.env.AGENT_MESSAGING_FAKE_TOKEN; // where the fake is on another machine
const world = `node-${process.pid}`;
let key;

async function request(bearer, method, url, body) {
  const headers = bearer ? { Authorization: `Bearer ${bearer}` } : {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text), header: response.headers };
}

const service = (method, path, body) => request(key, method, `${base}/v1${path}`, body);
const control = (method, path, body) => request(token, method, `${base}/_fake/v1${path}`, body);
const inWorld = (method, path, body) => control(method, `/worlds/${world}${path}`, body);

// A world of its own lets test files run at the same time on one fake.
before(async () => {
  const made = await control('POST', '/worlds', { name: world });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  key = made.body.key;
});

after(() => control('DELETE', `/worlds/${world}`));

test('an agent answers as scripted, and what was sent can be read', async () => {
  const { body: agent } = await service('POST', '/agents', { system_prompt: 'Be brief.' });
  await inWorld('POST', '/replies', { match: { agent_id: agent.agent_id }, replies: [{ text: 'It is on its way.' }] });
  const sent = await service('POST', `/agents/${agent.agent_id}/messages`, { text: 'Where is my order?' });
  assert.equal(sent.body.reply_text, 'It is on its way.');

  const { body } = await inWorld('GET', '/calls/await?text_containing=order');
  assert.equal(body.calls[0].trace_id, sent.body.trace_id);
  assert.deepEqual(JSON.parse(body.calls[0].body), { text: 'Where is my order?' });
});

test('a limit that is used up opens again a day later', async () => {
  const { body: agent } = await service('POST', '/agents', {});
  await inWorld('POST', '/keys/key_000001/limits/key_day/exhaust');
  const refused = await service('GET', `/agents/${agent.agent_id}`);
  assert.equal(refused.status, 429);
  assert.equal(refused.body.limit_key, 'key_day');
  assert.ok(Number(refused.header.get('retry-after')) > 0);

  await inWorld('POST', '/clock/advance', { duration: '24h' });
  assert.equal((await service('GET', `/agents/${agent.agent_id}`)).status, 200);
});

test('a reply that gets lost on its way has had its effect', async () => {
  const { body: fault } = await inWorld('POST', '/faults', {
    fault: { kind: 'lose_reply', how: { kind: 'close_early' } }, match: { endpoint: 'POST /v1/agents' }, times: 1,
  });
  const before = (await inWorld('GET', '/agents')).body.agents.length;
  await assert.rejects(service('POST', '/agents', {}));
  assert.equal((await inWorld('GET', '/agents')).body.agents.length, before + 1);
  const { body } = await inWorld('GET', '/faults');
  assert.equal(body.faults.find((f) => f.id === fault.id).hits, 1);
});
