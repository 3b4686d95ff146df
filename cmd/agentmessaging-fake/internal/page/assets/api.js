// Requests to the control interface. If the fake is not on loopback, they carry a token.
import { change, notice } from './store.js';

const tokenName = 'agentmessaging-fake-token';

// Failure is an answer that is not a success, in the interface's own words.
export class Failure extends Error {
  constructor(status, code, reason) {
    super(reason || code || `The fake answered ${status}.`);
    this.status = status;
  }
}

// setToken keeps the token for as long as the tab is open. It opens the whole fake, so it
// is in sessionStorage, and in no address and no cookie.
export function setToken(token) {
  sessionStorage.setItem(tokenName, token);
  change({ locked: '' });
}

// headers adds the token to the header of a request, if the user has given one.
export function headers(more) {
  const token = sessionStorage.getItem(tokenName);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

// controlPath is a path of the control interface. Each part is escaped: a key's label
// or an agent's identifier may hold anything.
export function controlPath(...parts) {
  return ['/_fake/v1', ...parts.map(encodeURIComponent)].join('/');
}

// control makes a request to the control interface. It returns the body of a success, or
// null if there is none. The stream reports the changes, so the caller loads nothing again.
export async function control(method, parts, body, query) {
  const init = { method, headers: headers(), cache: 'no-store' };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = 'application/json';
  }
  // An empty query leaves a question mark at the end, which the fake accepts.
  const resp = await fetch(`${controlPath(...parts)}?${new URLSearchParams(query)}`, init);
  if (!resp.ok) throw await failure(resp);
  return resp.status === 204 ? null : resp.json();
}

// failure reads an answer that is not a success; a 401 makes the page ask for the token.
export async function failure(resp) {
  const body = await resp.json().catch(() => ({}));
  if (resp.status === 401) change({ locked: sessionStorage.getItem(tokenName) ? 'That was not the token.' : 'This fake is not on loopback, so it asks for the token that it printed when it started.' });
  return new Failure(resp.status, body.error, body.reason);
}

// act does what the user asked for, and shows the result as a notice. done is the sentence
// for a success; '' shows none. act returns undefined for a failure.
export async function act(done, f) {
  try {
    const result = await f();
    if (done) notice('good', done);
    return result ?? true;
  } catch (err) {
    notice('bad', sentence(err));
    return undefined;
  }
}

// sentence describes an error for the user. An error that is not a Failure comes from
// fetch, whose words differ from browser to browser.
export function sentence(err) {
  return err instanceof Failure ? err.message : 'The fake cannot be reached. Is the program still running?';
}
