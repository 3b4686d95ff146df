// Tests of an application in Node. ./run runs them.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Fake } from './fake.mjs';

let fake;
before(async () => (fake = await Fake.start()));
beforeEach(() => fake.reset());
after(() => fake.stop());

async function service(method, path, body) {
  const headers = { Authorization: `Bearer ${fake.key}`, 'Content-Type': 'application/json' };
  const resp = await fetch(`${fake.baseURL}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  return { status: resp.status, body: await resp.json(), header: resp.headers };
}

test('an agent answers as scripted, and what was sent can be read', async () => {
  const { body: agent } = await service('POST', '/agents', { system_prompt: 'Be brief.' });
  await fake.control('POST', '/replies', { match: { agent_id: agent.agent_id }, replies: [{ text: 'It is on its way.' }] });
  const sent = await service('POST', `/agents/${agent.agent_id}/messages`, { text: 'Where is my order?' });
  assert.equal(sent.body.reply_text, 'It is on its way.');

  const { calls } = await fake.control('GET', '/calls?timeout=5s&text_containing=order');
  assert.equal(calls[0].trace_id, sent.body.trace_id);
  assert.deepEqual(JSON.parse(calls[0].body), { text: 'Where is my order?' });
});

test('a limit that is used up opens again a day later', async () => {
  await fake.control('POST', '/keys/key_000001/limits/key_day/exhaust');
  const refused = await service('POST', '/agents', {});
  assert.equal(refused.status, 429);
  assert.equal(refused.body.limit_key, 'key_day');
  assert.ok(Number(refused.header.get('retry-after')) > 0);

  await fake.control('POST', '/clock', { duration: '24h' });
  assert.equal((await service('POST', '/agents', {})).status, 200);
});

test('a reply that gets lost on its way has had its effect', async () => {
  await fake.control('POST', '/faults', { fault: { kind: 'lose_reply', how: { kind: 'close_early' } }, match: { endpoint: 'POST /v1/agents' }, times: 1 });
  await assert.rejects(service('POST', '/agents', {}));
  assert.equal((await fake.control('GET', '/agents')).total, 1);
  assert.equal((await fake.control('GET', '/faults')).faults[0].hits, 1);
});
