// What a user copies: a call as curl, and the environment of an application. A copied call
// holds no key: it reads keys from environment variables.
import { state } from './store.js';

// quoteShell puts a word between single quotes if it needs them. Between these, a shell
// reads every character but the quote unchanged.
function quoteShell(word) {
  return /^[\w\-./:]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// What the program keeps of a body, in bytes.
const kept = 64 << 10;

// isLong reports whether a body is longer than what was kept of it.
export function isLong(body) {
  return new TextEncoder().encode(body).length >= kept;
}

// asCurl is a call of the service for a shell.
export function asCurl({ method, path, key, header, body, body_bytes: bytes }) {
  // With a body that was cut or not kept, it would be another call.
  if (body ? isLong(body) : bytes > 0) return '# The body of this call was not kept whole, so it cannot be sent again.';
  // curl chooses GET, or POST with a body, by itself. After -X HEAD it would wait for a body.
  const option = { [body ? 'POST' : 'GET']: '', HEAD: ' --head' }[method] ?? ` -X ${quoteShell(method)}`;
  const command = `curl -sS${option}`;
  // A path may hold anything that the client sent.
  const plain = /^[\w\-/]*$/.test(path);
  const lines = [plain ? `${command} "$AGENT_MESSAGING_BASE_URL${path}"` : `${command} --globoff --path-as-is "$AGENT_MESSAGING_BASE_URL"${quoteShell(path)}`];
  if (key !== 'missing') lines.push('-H "Authorization: Bearer $AGENT_MESSAGING_API_KEY"');
  if (body) {
    lines.push(`-H ${quoteShell(`Content-Type: ${header?.['Content-Type']?.[0] ?? 'application/json'}`)}`);
    // The fake has redacted a provider key; the shell inserts one.
    lines.push(`--data-raw ${quoteShell(body).replace(/("api_key"\s*:\s*)"\[redacted\]"/, `$1"'"$PROVIDER_API_KEY"'"`)}`);
  }
  return lines.join(' \\\n  ');
}

// exportLines are the environment of an application that uses a key.
export function exportLines(secret) {
  // Before the fake has answered, the page's own address is the best guess.
  const base = state.info?.base_url ?? location.origin;
  return `export AGENT_MESSAGING_BASE_URL=${quoteShell(base)}\nexport AGENT_MESSAGING_API_KEY=${quoteShell(secret)}`;
}
