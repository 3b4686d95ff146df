// What the fake may be full of: one of everything, and texts that a page may trip
// over.

// populate leaves one of everything: two keys, an agent with a conversation, a rule that
// stays, and calls that fail in each of the ways that a list can show.
export async function populate(fake) {
  await fake.control('POST', '/keys', { plan: 'pro' });
  const about = { system_prompt: 'Be brief and warm.', customer_ref: 'bakery-on-the-corner', metadata: { shop: 7, language: 'en' } };
  await fake.agent({ ...about, sms: { mode: 'sandbox' } }, 'When do you open?', 'And on Sundays?');
  await fake.control('PUT', '/agents/agent_000001/sms', { status: 'active', phone_number: '+15555550100' });
  const say = (text) => fake.call('POST', '/v1/agents/agent_000001/messages', { text }).catch(() => {});
  const once = (fault) => fake.control('POST', '/faults', { fault, times: 1 });

  await once({ kind: 'rate_limited', retry_after: '1' });
  for (const text of ['Do you have rye bread?', 'Do you have rye bread?']) await say(text); // refused, and retried
  await once({ kind: 'lose_reply', how: { kind: 'reset_connection' } });
  for (const text of ['A cake for Friday, please.', 'A cake for Friday, please.']) await say(text); // the user sent it again
  await fake.call('GET', '/v1/agents/agent_000009');
  await once({ kind: 'answer', status: 503 });
  await fake.call('GET', '/v1/status');
  await fake.control('POST', '/keys/key_000001/limits/warmup_key_hour/exhaust');
  await fake.call('POST', '/v1/warmup');
  await fake.control('POST', '/faults', { fault: { kind: 'latency', duration: '1ms' }, match: { endpoint: 'GET /v1/status' } });
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
  await fake.control('POST', '/replies', { replies: [{ text, warnings: [text] }, { status: 404, code: text, reason: text }] });
  await fake.control('PUT', '/agents/agent_000001/sms', { status: 'active', phone_number: text.slice(0, 64) });
  for (let i = 0; i < 2; i++) await fake.call('POST', '/v1/agents/agent_000001/messages', { text, user_ref: text });
  await fake.control('POST', '/agents/agent_000001/conversation', { exchanges: [{ text, reply_text: text, warnings: [text], user_ref: text, trace_id: text }] });
  await fake.control('POST', '/agents', { key: 'key_000001', agent_id: text.replaceAll('/', '').slice(0, 200), status: text.slice(0, 64), customer_ref: text.slice(0, 200) });
  await fake.control('POST', '/faults', { fault: { kind: 'raw_answer', status: 418, content_type: 'text/html', body: text }, match: { endpoint: 'GET /v1/status' } });
  await fake.control('POST', '/faults', { fault: { kind: 'hang' }, match: { text_containing: text } });
  await fake.call('GET', '/v1/status');
}
