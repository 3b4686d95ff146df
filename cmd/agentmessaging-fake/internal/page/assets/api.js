// Requests to the control interface.
import { state, change, notice } from './store.js';

const tokenName = 'agentmessaging-fake-token';

// Failure is an answer that is not a success, in the interface's own words.
export class Failure extends Error {
  constructor(status, code, reason) {
    super(reason || code || `The fake answered ${status}.`);
    this.status = status;
  }
}

// The token lives as long as the tab: it opens the whole fake.
export function setToken(token) {
  sessionStorage.setItem(tokenName, token);
}

export function headers(more) {
  const token = sessionStorage.getItem(tokenName);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

// worldPath is a path of the world that is shown.
export function worldPath(...parts) {
  return ['/_fake/v1/worlds', ...[state.world, ...parts].map(encodeURIComponent)].join('/');
}

// request answers the body of a success, null where there is none.
export async function request(method, path, body) {
  const init = { method, headers: headers(), cache: 'no-store' };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = 'application/json';
  }
  const resp = await fetch(path, init);
  if (!resp.ok) throw await failure(resp);
  return resp.status === 204 ? null : resp.json();
}

// inWorld is a request to the world that is shown. The stream tells of what it
// changes, so that nobody has to load it again.
export function inWorld(method, parts, body) {
  return request(method, worldPath(...parts), body);
}

// failure reads an answer that is none; a 401 makes the page ask for the token.
export async function failure(resp) {
  const body = await resp.json().catch(() => ({}));
  if (resp.status === 401) change({ locked: true, dialog: { kind: 'token', refused: sessionStorage.getItem(tokenName) !== null } });
  return new Failure(resp.status, body.error, body.reason);
}

// act does something the user asked for, and shows what came of it. It answers
// undefined where it failed.
export async function act(done, f) {
  try {
    const result = await f();
    if (done) notice('done', done);
    return result ?? true;
  } catch (err) {
    notice('failed', sentence(err));
    return undefined;
  }
}

// actWithUndo is act with a snapshot from before, which takes back what was done.
// Calls made meanwhile lose their effect with it. The clock cannot go back, so
// what moves it has no undo.
export async function actWithUndo(done, f) {
  const before = await act('', () => inWorld('POST', ['snapshots']));
  if (!before) return;
  const forget = () => inWorld('DELETE', ['snapshots', before.id]).catch(() => {});
  if (!(await act('', f))) return forget();
  const timer = setTimeout(forget, 11_000);
  notice('done', done, () => {
    clearTimeout(timer);
    act('Taken back.', () => inWorld('POST', ['snapshots', before.id, 'restore'])).then(forget);
  });
}

export function sentence(err) {
  return err instanceof Failure ? err.message : 'The fake cannot be reached. Is the program still running?';
}
