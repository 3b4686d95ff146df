// What the fake may be full of: a day with an application, for the picture and for the
// tests that look at full panels, and texts that a page may trip over.
import { request } from 'node:http';

const questions = ['When do you open?', 'And on Sundays?', 'Do you have rye bread today?', 'Can I order a cake for Friday?'];
const answers = ['We open at 7 in the morning, every day but Monday.', 'From 8 to noon.', 'Yes, until it is gone, which is often before eleven.', 'Gladly. For how many people should it be?'];

// populate makes a day: two customers with a key each, a conversation with what can go
// wrong in one, BYOK, and calls that fail in each of the ways that a list can show.
export async function populate(fake) {
  await fake.control('POST', 'replies', { replies: answers.map((text) => ({ text })), match: {} });
  const { key } = await fake.control('POST', 'keys', { plan: 'pro' });
  const shop = (method, path, body) => fake.call(method, path, body, { key });

  await fake.call('GET', '/v1/status');
  await fake.call('POST', '/v1/warmup', { mode: 'hosted' });
  await bakery(fake);
  await shop('PUT', '/v1/byok', { provider: 'anthropic', api_key: 'sk-example', label: 'production', model: 'large' });
  await shop('POST', '/v1/agents', { customer_ref: 'bicycle-repair', llm: { mode: 'byok' } });
  await shop('POST', '/v1/agents/agent_000002/messages', { text: 'My chain comes off when I shift.' });
  await mishaps(fake);
}

// bakery is the first agent: a call that is refused and repeated, and one whose reply
// is lost after the agent had it.
async function bakery(fake) {
  await fake.agent({
    system_prompt: 'You answer for a small bakery. Be brief and warm; offer to take an order where it fits.',
    customer_ref: 'bakery-on-the-corner',
    metadata: { shop: 7, language: 'en' },
    sms: { mode: 'sandbox' },
  }, ...questions.slice(0, 2));
  const say = (text) => fake.call('POST', '/v1/agents/agent_000001/messages', { text }).catch(() => {});
  await fake.control('POST', 'faults', { fault: { kind: 'rate_limited', retry_after: '1' }, match: { agent_id: 'agent_000001' }, times: 1 });
  for (const text of [questions[2], questions[2]]) await say(text); // refused, and retried
  await fake.control('POST', 'faults', { fault: { kind: 'lose_reply', how: { kind: 'reset_connection' } }, match: { agent_id: 'agent_000001' }, times: 1 });
  for (const text of [questions[3], questions[3]]) await say(text); // the user sent it again
  await fake.control('PUT', 'agents/agent_000001/sms', { status: 'active', phone_number: '+15555550100' });
  await fake.call('GET', '/v1/agents/agent_000001');
}

// mishaps are calls that fail by themselves: 404, 503, 429, and one that is slow.
async function mishaps(fake) {
  await fake.call('GET', '/v1/agents/agent_000009');
  await fake.control('POST', 'faults', { fault: { kind: 'answer', status: 503 }, times: 1 });
  await fake.call('GET', '/v1/status');
  await fake.control('POST', 'faults', { fault: { kind: 'latency', duration: '40ms' }, match: { endpoint: 'POST /v1/agents/{agent_id}/messages' } });
  await fake.control('POST', 'keys/key_000001/limits/warmup_key_hour/exhaust');
  await fake.call('POST', '/v1/warmup');
  await fake.call('POST', '/v1/agents/agent_000001/messages', { text: 'For twelve, with raspberries, please.' });
}

// Where this runs, the page has made markup of a text.
export const script = '<script>window.pwned=1</script>';

// fill puts the text into every field that an application, or a test, can set.
export async function fill(fake, text) {
  const headers = { 'User-Agent': encodeURI(text) };
  await fake.call('POST', '/v1/agents', {
    system_prompt: text,
    customer_ref: text.slice(0, 200),
    metadata: { [text]: text },
    llm: { mode: 'byok', provider: 'openai', api_key: 'sk', model: text.slice(0, 200), base_url: `https://x.example/${encodeURI(script)}`, label: text.slice(0, 60) },
  }, { headers });
  await fake.control('POST', 'replies', { replies: [{ text, warnings: [text] }, { status: 404, code: text, reason: text }] });
  await fake.control('PUT', 'agents/agent_000001/sms', { status: 'active', phone_number: text.slice(0, 64) });
  for (let i = 0; i < 2; i++) await fake.call('POST', '/v1/agents/agent_000001/messages', { text, user_ref: text });
  await fake.control('POST', 'agents/agent_000001/conversation', { exchanges: [{ text, reply_text: text, warnings: [text], user_ref: text, trace_id: text }] });
  await fake.control('POST', 'agents', { key: 'key_000001', agent_id: text.slice(0, 200), status: text.slice(0, 64), customer_ref: text.slice(0, 200) });
  await fake.control('POST', 'faults', { fault: { kind: 'raw_answer', status: 418, content_type: 'text/html', body: text }, match: { endpoint: 'GET /v1/status' } });
  await fake.control('POST', 'faults', { fault: { kind: 'hang' }, match: { text_containing: text } });
  await fake.call('GET', '/v1/status');
  await raw(fake, '/v1/agents/<script>window.pwned=4</script>');
}

// raw sends a path as it is; fetch would escape it.
function raw(fake, path) {
  return new Promise((resolve, reject) => {
    const req = request(fake.baseURL, { path, headers: { Authorization: `Bearer ${fake.key}`, 'X-Trick': script } }, (resp) => resp.resume().on('end', resolve));
    req.on('error', reject).end();
  });
}
