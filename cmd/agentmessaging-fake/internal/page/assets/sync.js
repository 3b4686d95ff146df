// Keeps the page in step with the fake: follows the stream of calls, and loads again what
// the stream reports as changed.
import { state, change, activeFilter, notice } from './store.js';
import { oneAtATime, get, load, loadFailed, openKey, reload } from './load.js';
import { follow } from './stream.js';
import { CallLog, windowSize } from './calls.js';

// The calls that the page holds. They are not in the state, since views read them through
// methods. Code that changes them also calls change.
export const log = new CallLog();

// openCall shows a call, which the fake may have kept longer than the page.
export async function openCall(seq) {
  const shown = log.get(seq);
  change({ openCall: shown ?? null, tabStop: seq || state.tabStop });
  if (shown || !seq || !state.info) return;
  // If the fake has dropped the call too, nothing opens.
  const found = await get(['calls'], { limit: 1, after: seq - 1, before: seq + 1 }).catch(loadFailed);
  if (Number(state.route.id) === seq) change({ openCall: found?.calls[0] ?? null });
}

// showFound shows what passes the filter.
export function showFound() {
  log.beginList(Object.keys(activeFilter()).length > 0);
  loadFound();
}

// loadFound fetches the calls that pass the filter and are not shown yet.
const loadFound = oneAtATime(async () => {
  if (!log.found) return;
  // The user may change the filter during the request. Then its result is not shown.
  const { listNumber } = log;
  const more = await get(['calls'], { limit: windowSize, ...activeFilter(), after: log.found.calls.at(-1)?.seq ?? 0 });
  if (listNumber !== log.listNumber) return; // another filter by now
  log.addFound(more);
  change({});
});

// loadOlder fetches calls older than the first that is shown, at the click on a button:
// a list that grows while one scrolls has no end to reach.
export const loadOlder = oneAtATime(async () => {
  log.addOlder(await get(['calls'], { limit: windowSize, ...activeFilter(), before: log.shown.calls[0].seq }));
  change({});
});

// freeze holds the list while somebody reads it. It is called for each scroll and mouse move,
// and draws only where something changes.
export function freeze(reading) {
  if (reading === Boolean(log.frozen)) return;
  log.freeze(reading);
  change({});
}

// onCall loads again what the page shows and a call may have changed. The stream reports
// only changes by the control interface.
function onCall(call) {
  const { page, id } = state.route;
  if (call.key === openKey()) load('limits');
  if (call.fault) load('faults');
  loadFound();
  // Reading changes nothing that the page shows.
  if (call.method === 'GET') return;
  if (page === 'agents' || call.endpoint === 'POST /v1/agents') load('agents');
  if (page === 'agents' && call.agent_id === id) load('conversation');
}

// onEvent takes one event of the stream into the state. data is JSON as the fake wrote
// it; control/stream.go lists the events.
function onEvent({ event, data }) {
  const found = JSON.parse(data);
  if (event === 'state') return onState(found.what);
  if (event === 'gap') notice('bad', `${found.missed} calls came too fast to be shown.`);
  // A call that drips or hangs is in the list already, with its number.
  if (event === 'under_way') change({ underWay: found.calls.filter((c) => !c.seq) });
  if (event !== 'call') return;
  // A call comes a second time when its answer has ended.
  if (log.add(found)) onCall(found);
  else log.update(found);
  change(state.openCall?.seq === found.seq ? { openCall: found } : {});
}

// onState takes a change of some kind of state. A reset, and a request to forget the calls,
// empty the list; calls that come after that are new.
function onState(what) {
  if (what === 'reset' || what === 'calls') {
    log.replace({ calls: [], total: 0 });
    loadFound();
    change({ openCall: null, tabStop: 0 });
  }
  reload(what);
}

let waiting = null; // events that come while everything is loaded, in order

// refresh loads everything, since calls and a reset may have been missed, and the program
// started anew. Then it takes what came meanwhile.
const refresh = oneAtATime(async () => {
  // What comes from here on may be in the answer too; add leaves out a call that is
  // there.
  waiting = [];
  try {
    const [info, found] = await Promise.all([get(['info']), get(['calls'], { limit: windowSize })]);
    log.replace(found);
    change({ info, underWay: found.under_way.filter((c) => !c.seq) });
    loadFound();
    openCall(state.route.page === 'traffic' ? Number(state.route.id) || 0 : 0);
    reload('reset');
  } finally {
    const missed = waiting;
    waiting = null;
    missed.forEach(onEvent);
  }
});

// receive takes what stream.js hands over.
function receive(event) {
  if (waiting) waiting.push(event);
  else onEvent(event);
}

// onLink shows whether the fake is connected. Once it is, all that may have been missed
// is loaded.
function onLink(link) {
  change({ link });
  if (link === 'live') refresh();
}

// Ends the stream that start began.
let stop = new AbortController();

// start follows the fake from the beginning. A tab that nobody sees has no stream: a browser
// opens six connections to a host at most, and a stream keeps one.
export function start() {
  stop.abort();
  stop = new AbortController();
  if (!document.hidden) follow(stop.signal, receive, onLink);
}

document.addEventListener('visibilitychange', start);
