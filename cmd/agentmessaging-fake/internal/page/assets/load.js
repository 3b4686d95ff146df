// Loads what is shown from the control interface into the state.
import { state, change, notice, now } from './store.js';
import { request, controlPath, sentence, Failure } from './api.js';
import { secondsOf } from './format.js';

// Several changes within this time, in ms, are loaded once.
const pause = 200;

// coalesced runs a load once at a time, and once more if it was asked for
// meanwhile.
export function coalesced(load) {
  let running = false;
  let again = false;
  return async () => {
    again = true;
    if (running) return;
    running = true;
    while (again) {
      again = false;
      await load().catch(loadFailed);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    running = false;
  };
}

// A lost connection shows in the header; other failures are shown as a notice.
export function loadFailed(err) {
  if (err instanceof Failure && err.status !== 401 && err.status !== 404) notice('failed', sentence(err));
}

// get answers null where the thing is no longer there.
export async function get(parts, query = {}) {
  try {
    return await request('GET', `${controlPath(...parts)}?${new URLSearchParams(query)}`);
  } catch (err) {
    if (err instanceof Failure && err.status === 404) return null;
    throw err;
  }
}

// loadList loads a list that has the same name in the answer and in the state.
function loadList(name) {
  return coalesced(async () => change({ [name]: (await get([name]))?.[name] ?? [] }));
}

// A fault that has acted as often as it was to is no longer in force.
const inForce = (f) => !(f.times && f.hits >= f.times) && !(f.nth && f.hits > 0);
export const loadFaults = coalesced(async () => change({ faults: ((await get(['faults']))?.faults ?? []).filter(inForce) }));
const loadReplies = loadList('replies');
const loadDecisions = loadList('decisions');
// The limits come after the keys: which key is open may follow from them.
const loadKeys = coalesced(async () => {
  change({ keys: (await get(['keys']))?.keys ?? [] });
  loadLimits();
});

// With more agents than this the list shows the newest.
const shownAgents = 200;

export const loadAgents = coalesced(async () => {
  const { page, id } = state.route;
  const open = page === 'agents' && id ? get(['agents', id]) : null;
  const [found, agent] = await Promise.all([get(['agents'], { limit: shownAgents }), open]);
  change({ agents: found?.agents ?? [], agentTotal: found?.total ?? 0, openAgent: agent });
});

// The limits come after the clock: when they open follows from it.
const loadClock = coalesced(async () => {
  const clock = await get(['clock']);
  if (clock) change({ clock: { offset: Date.parse(clock.now) - Date.now(), advanced: secondsOf(clock.advanced) } });
  loadLimits();
});

// openKey is the key whose limits are shown: the one of the address, the one that
// was chosen, or else the default one.
export function openKey() {
  const { page, id } = state.route;
  if (page === 'keys' && id) return id;
  const keys = state.keys ?? [];
  if (page === 'traffic' && keys.some((k) => k.label === state.limitsOf)) return state.limitsOf;
  return (keys.find((k) => k.default && !k.revoked) ?? keys.find((k) => !k.revoked) ?? keys[0])?.label ?? '';
}

export const loadLimits = coalesced(async () => {
  const key = openKey();
  const found = key && (await get(['keys', key]));
  change({ limits: key ? { key, rows: found?.limits ?? [] } : null });
  expectOpening(found?.limits ?? []);
});

export function showLimitsOf(key) {
  if (key === state.limitsOf) return;
  change({ limitsOf: key });
  loadLimits();
}

let opening = 0;

// expectOpening loads the limits once more when the next of them has more left
// than now: when it opens, or when its window must be over.
function expectOpening(rows) {
  clearTimeout(opening);
  const waits = rows
    .filter((row) => row.opens_at || row.used > 0)
    .map((row) => (row.opens_at ? Date.parse(row.opens_at) - now() : secondsOf(row.window) * 1000));
  // setTimeout takes 31 bits; a day fits.
  if (waits.length) opening = setTimeout(loadLimits, Math.max(pause, Math.min(...waits)) + 50);
}

// How many exchanges a conversation shows.
const shownExchanges = 100;

export const loadConversation = coalesced(async () => {
  const { page, id } = state.route;
  if (page !== 'agents' || !id) return;
  const limit = shownExchanges;
  const [found, made] = await Promise.all([
    get(['agents', id, 'conversation'], { limit }),
    get(['calls'], { agent_id: id, endpoint: 'POST /v1/agents/{agent_id}/messages', limit }),
  ]);
  if (state.route.id !== id) return; // another one is open by now
  change({ conversation: { agent: id, exchanges: found?.exchanges, total: found?.total ?? 0, calls: made?.calls ?? [] } });
});

const loads = {
  keys: [loadKeys],
  agents: [loadAgents, loadConversation],
  faults: [loadFaults],
  clock: [loadClock],
  limits: [loadLimits],
  replies: [loadReplies],
  reset: [loadKeys, loadAgents, loadFaults, loadReplies, loadDecisions, loadClock, loadConversation],
};

// reload loads a kind of state anew, by its name in the stream.
export function reload(what) {
  for (const load of loads[what] ?? []) load();
}
