// What a user copies: a call as curl and as Go, and the environment of an
// application. No snippet of a call holds a key: environment variables stand where
// keys go.
import { state } from './store.js';

// quoteShell puts a string between single quotes, where a shell sees nothing
// special but the quote itself.
function quoteShell(s) {
  return `'${s.replaceAll("'", "'\\''")}'`;
}

// A path may hold anything that the client sent.
function shellPath(path) {
  const safe = /^[\w\-./~%]*$/.test(path);
  return safe ? `"$AGENT_MESSAGING_BASE_URL${path}"` : `"$AGENT_MESSAGING_BASE_URL"${quoteShell(path)}`;
}

// What the program keeps of a body, in bytes.
const kept = 64 << 10;

// isLong reports whether a body is longer than what was kept of it.
export function isLong(body) {
  return new TextEncoder().encode(body).length >= kept;
}

// isCut reports whether the fake has not kept the body, or not all of it.
function isCut({ body, body_bytes: bytes }) {
  return body ? isLong(body) : bytes > 0;
}

const cutWords = 'The body of this call was not kept whole, so it cannot be sent again.';

// asCurl is a call for a shell, of the service or, with another secret, of the
// control interface.
export function asCurl(call, secret = 'AGENT_MESSAGING_API_KEY') {
  if (isCut(call)) return `# ${cutWords}`;
  const lines = [`curl -sS ${curlOptions(call)}${shellPath(call.path)}`];
  if (call.key !== 'missing') lines.push(`-H "Authorization: Bearer $${secret}"`);
  if (call.body) {
    lines.push(`-H ${quoteShell(`Content-Type: ${call.header?.['Content-Type']?.[0] ?? 'application/json'}`)}`);
    lines.push(`--data-raw ${shellBody(call.body)}`);
  }
  return lines.join(' \\\n  ');
}

function curlOptions({ method, path, body }) {
  const options = [];
  if (method !== (body ? 'POST' : 'GET')) options.push(`-X ${quoteMethod(method)}`);
  if (/[[\]{}]/.test(path)) options.push('--globoff');
  if (/\/\.\.?(\/|$)/.test(path)) options.push('--path-as-is');
  return options.map((o) => `${o} `).join('');
}

function quoteMethod(method) {
  return /^[A-Z]+$/.test(method) ? method : quoteShell(method);
}

// Where the fake has taken out a provider key, the shell puts one in.
function shellBody(body) {
  const member = /("api_key"\s*:\s*)"\[redacted\]"/;
  const quoted = quoteShell(body);
  return quoted.replace(member, (_, name) => `${name}"'"$PROVIDER_API_KEY"'"`);
}

// quoteGo makes a Go string literal. It differs from JSON's in what Go source
// may not hold: a byte order mark and half a surrogate pair.
function quoteGo(s) {
  return JSON.stringify(String(s).toWellFormed())
    .replaceAll('\ufeff', '\\ufeff')
    .replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function asGo(call) {
  if (call.member) return `// The client refuses this call before it sends anything. ${call.reason}`;
  const body = parseObject(call.body);
  const make = goCalls[call.endpoint];
  if (!make) return '// The SDK has no method that sends this call.';
  if (isCut(call)) return `// ${cutWords}`;
  if (call.body && !body) return '// The body of this call is no JSON object.';
  const { result, code } = make(call, body ?? {});
  return [
    '// NewClientFromEnv reads AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY.',
    'client, err := agentmessaging.NewClientFromEnv()',
    'if err != nil {',
    '\treturn err',
    '}',
    result ? `${result}, err := ${code}` : `err = ${code}`,
  ].join('\n');
}

function parseObject(body) {
  try {
    const found = JSON.parse(body);
    return found && typeof found === 'object' && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

const goCalls = {
  'GET /v1/status': () => ({ result: 'status', code: 'client.Status(ctx)' }),
  'POST /v1/warmup': (_, b) => ({ result: 'warm', code: `client.WarmUp(ctx, ${quoteGo(b.mode ?? '')})` }),
  'GET /v1/byok': () => ({ result: 'config', code: 'client.GetBYOK(ctx)' }),
  'PUT /v1/byok': (_, b) => ({ result: 'config', code: `client.SetBYOK(ctx, ${struct('SetBYOKParams', b)})` }),
  'DELETE /v1/byok': () => ({ result: '', code: 'client.ClearBYOK(ctx)' }),
  'POST /v1/agents': (_, b) => ({ result: 'agent', code: `client.CreateAgent(ctx, ${struct('CreateAgentParams', b)})` }),
  'GET /v1/agents/{agent_id}': (c) => ({ result: 'agent', code: `client.GetAgent(ctx, ${quoteGo(c.agent_id)})` }),
  'POST /v1/agents/{agent_id}/messages': (c, b) => ({ result: 'reply', code: `client.SendMessage(ctx, ${quoteGo(c.agent_id)}, ${struct('MessageParams', b)})` }),
  'POST /v1/agents/{agent_id}/channels/sms': (c, b) => ({ result: 'sms', code: `client.EnableSMS(ctx, ${quoteGo(c.agent_id)}, ${quoteGo(b.mode ?? '')})` }),
};

// Names of Go that are not the member's own words put together.
const initialisms = { api_key: 'APIKey', base_url: 'BaseURL', sms: 'SMS', llm: 'LLM' };

function goName(member) {
  return initialisms[member] ?? member.replace(/(?:^|_)(.)/g, (_, letter) => letter.toUpperCase());
}

function goValue(member, value, depth) {
  if (member === 'sms' || member === 'llm') return struct(`${goName(member)}Params`, value, depth + 1);
  if (member === 'metadata') return `json.RawMessage(${quoteGo(JSON.stringify(value))})`;
  return member === 'api_key' ? 'agentmessaging.Secret(os.Getenv("PROVIDER_API_KEY"))' : quoteGo(value);
}

function struct(type, values, depth = 0) {
  const indent = '\t'.repeat(depth + 1);
  const written = Object.entries(values).map(([member, value]) => [`${goName(member)}:`, goValue(member, value, depth)]);
  if (written.length === 0) return `agentmessaging.${type}{}`;
  // As gofmt does: values stand in one column. Those of several lines end it, so
  // they come last.
  const long = written.filter(([, value]) => value.includes('\n'));
  const short = written.filter((one) => !long.includes(one));
  const width = Math.max(0, ...short.map(([name]) => name.length)) + 1;
  const lines = [...short.map(([name, value]) => name.padEnd(width) + value), ...long.map((one) => one.join(' '))].map((line) => `${indent}${line},`);
  return `agentmessaging.${type}{\n${lines.join('\n')}\n${'\t'.repeat(depth)}}`;
}

// exportLines are the environment of an application that uses a key.
export function exportLines(secret) {
  const base = state.info?.base_url ?? location.origin;
  const word = (s) => (/^[\w\-./:]+$/.test(s) ? s : quoteShell(s));
  return `export AGENT_MESSAGING_BASE_URL=${word(base)}\nexport AGENT_MESSAGING_API_KEY=${word(secret)}`;
}
