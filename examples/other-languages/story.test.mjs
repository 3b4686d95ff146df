// A small story over the service and the fake's control interface, in Node
// without any package. AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY are the
// address and the key of a fake that runs; ./run starts one.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

const base = process.env.AGENT_MESSAGING_BASE_URL ?? 'http://127.0.0.1:8460';
const token = process.env.AGENT_MESSAGING_FAKE_TOKEN; // where the fake is on another machine
const key = process.env.AGENT_MESSAGING_API_KEY ?? 'amk_fake_000001';

async function request(bearer, method, url, body) {
  const headers = bearer ? { Authorization: `Bearer ${bearer}` } : {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text), header: response.headers };
}

const service = (method, path, body) => request(key, method, `${base}/v1${path}`, body);
const control = (method, path, body) => request(token, method, `${base}/_fake/v1${path}`, body);

// Each test begins with an empty fake. Test files that run at the same time start a fake each.
beforeEach(async () => assert.equal((await control('POST', '/reset')).status, 204));

test('an agent answers as scripted, and what was sent can be read', async () => {
  const { body: agent } = await service('POST', '/agents', { system_prompt: 'Be brief.' });
  await control('POST', '/replies', { match: { agent_id: agent.agent_id }, replies: [{ text: 'It is on its way.' }] });
  const sent = await service('POST', `/agents/${agent.agent_id}/messages`, { text: 'Where is my order?' });
  assert.equal(sent.body.reply_text, 'It is on its way.');

  const { body } = await control('GET', '/calls?timeout=5s&text_containing=order');
  assert.equal(body.calls[0].trace_id, sent.body.trace_id);
  assert.deepEqual(JSON.parse(body.calls[0].body), { text: 'Where is my order?' });
});

test('a limit that is used up opens again a day later', async () => {
  const { body: agent } = await service('POST', '/agents', {});
  await control('POST', '/keys/key_000001/limits/key_day/exhaust');
  const refused = await service('GET', `/agents/${agent.agent_id}`);
  assert.equal(refused.status, 429);
  assert.equal(refused.body.limit_key, 'key_day');
  assert.ok(Number(refused.header.get('retry-after')) > 0);

  await control('POST', '/clock', { duration: '24h' });
  assert.equal((await service('GET', `/agents/${agent.agent_id}`)).status, 200);
});

test('a reply that gets lost on its way has had its effect', async () => {
  const { body: fault } = await control('POST', '/faults', {
    fault: { kind: 'lose_reply', how: { kind: 'close_early' } }, match: { endpoint: 'POST /v1/agents' }, times: 1,
  });
  const before = (await control('GET', '/agents')).body.agents.length;
  await assert.rejects(service('POST', '/agents', {}));
  assert.equal((await control('GET', '/agents')).body.agents.length, before + 1);
  const { body } = await control('GET', '/faults');
  assert.equal(body.faults.find((f) => f.id === fault.id).hits, 1);
});
