// Loads what is shown from the control interface into the state.
import { state, change, notice, now } from './store.js';
import { control, sentence, Failure } from './api.js';
import { secondsOf } from './format.js';

// Several changes within this time, in ms, are loaded once: a load test changes the
// limits with each call.
const pause = 200;

// oneAtATime returns a function that starts load, unless it is running already. Then load
// runs once more at its end.
export function oneAtATime(load) {
  let running = false;
  let again = false;
  return async () => {
    again = true;
    if (running) return;
    // A request during a run starts one more run, which sees what changed meanwhile.
    running = true;
    while (again) {
      again = false;
      await load().catch(loadFailed);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    running = false;
  };
}

// loadFailed shows a failure as a notice. A lost connection shows in the header.
export function loadFailed(err) {
  // After a 401 the page asks for the token, and get returns null for a 404.
  if (err instanceof Failure && err.status !== 401 && err.status !== 404) notice('bad', sentence(err));
}

// get returns null for a 404, since what the page shows may have been removed.
export async function get(parts, query) {
  try {
    return await control('GET', parts, undefined, query);
  } catch (err) {
    if (err instanceof Failure && err.status === 404) return null;
    throw err;
  }
}

// With more agents than this the list shows the newest.
const shownAgents = 200;
// How many exchanges a conversation shows.
const shownExchanges = 100;

// A fault that has acted its number of times is no longer in force.
const inForce = (f) => !(f.times && f.hits >= f.times) && !(f.nth && f.hits > 0);

// openAgent is the agent of the address, '' where no agent is open.
const openAgent = () => (state.route.page === 'agents' ? state.route.id : '');

// openKey returns the key whose limits are shown: the key of the address, or else the
// default key, which is the first.
export function openKey() {
  const { page, id } = state.route;
  return page === 'keys' && id ? id : (state.keys?.[0]?.label ?? '');
}

// list returns a source for a list that has the same name in the answer and in the state.
const list = (name) => async () => ({ [name]: (await get([name]))[name] });

// Each source loads a part of the state. Its name is an argument of load, and for most
// sources also the kind of change that the stream reports.
const sources = {
  keys: list('keys'),
  replies: list('replies'),
  faults: async () => ({ faults: (await list('faults')()).faults.filter(inForce) }),
  async clock() {
    const clock = await get(['clock']);
    return { clock: { offset: Date.parse(clock.now) - Date.now(), advanced: secondsOf(clock.advanced) } };
  },
  async limits() {
    const key = openKey();
    const rows = (key && (await get(['keys', key])))?.limits ?? [];
    // A limit opens again as time passes, and no event reports that.
    expectOpening(rows);
    return { limits: key ? { key, rows } : null };
  },
  async agents() {
    const id = openAgent();
    const [found, agent] = await Promise.all([get(['agents'], { limit: shownAgents }), id && get(['agents', id])]);
    return { agents: found.agents, agentTotal: found.total, openAgent: agent || null };
  },
  async conversation() {
    const id = openAgent();
    if (!id) return {};
    const limit = shownExchanges;
    // The exchanges are what was said, the calls what was tried.
    const [found, made] = await Promise.all([
      get(['agents', id, 'conversation'], { limit }),
      get(['calls'], { agent_id: id, endpoint: 'POST /v1/agents/{agent_id}/messages', limit }),
    ]);
    if (openAgent() !== id) return {}; // another one is open by now
    return { conversation: { agent: id, exchanges: found?.exchanges, total: found?.total ?? 0, calls: made.calls } };
  },
};

// The limits are loaded after the keys and the clock, because these decide which key is
// open and when its limits open.
const loads = Object.fromEntries(
  Object.entries(sources).map(([name, source]) => [
    name,
    oneAtATime(async () => {
      change(await source());
      if (name === 'keys' || name === 'clock') load('limits');
    }),
  ]),
);

// load loads the named sources again. It returns at once: each source is drawn when it
// has arrived.
export function load(...names) {
  for (const name of names) loads[name]();
}

// reload loads the kind of state that the stream reports as changed. A reset changes all
// kinds. The page does not show a kind without a source, such as byok.
export function reload(what) {
  if (what === 'reset') load('keys', 'agents', 'faults', 'replies', 'clock', 'conversation');
  else if (what === 'agents') load('agents', 'conversation');
  else if (what in loads) load(what);
}

// The timer of expectOpening.
let opening = 0;

// expectOpening loads the limits again at the time when the next of them may have more
// calls left: when it opens, or when its window is over.
function expectOpening(rows) {
  clearTimeout(opening);
  // An open limit does not say when its calls stop counting. They count for one window at
  // most.
  const waits = rows
    .filter((row) => row.opens_at || row.used > 0)
    .map((row) => (row.opens_at ? Date.parse(row.opens_at) - now() : secondsOf(row.window) * 1000));
  // setTimeout takes 31 bits; a day fits.
  if (waits.length) opening = setTimeout(load, Math.max(pause, Math.min(...waits)) + 50, 'limits');
}
