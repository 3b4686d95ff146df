// The state of the page, and the promise to draw it once a frame at most.

export const state = {
  route: { page: 'traffic', id: '' },
  link: { phase: 'connecting', retryAt: 0 }, // phase: connecting, live, waiting
  info: null,
  locked: false, // without the token nothing can be shown
  keys: null, // null until loaded, as are the other lists
  agents: null, // the newest that the search finds
  agentTotal: 0, // how many it finds
  openAgent: null, // the agent of the address, null where there is none
  faults: null,
  replies: null,
  byokAvailable: true,
  clock: { offset: 0, advanced: 0 }, // offset: the fake's time less ours, in ms
  limits: null, // of the key that is open
  limitsOf: '', // the label of the key whose limits are above the traffic; '' for the first key
  keyByok: null,
  conversation: null, // of the agent that is open: {agent, exchanges, total, wanted}
  sending: {}, // agent id -> message that has no answer yet
  filter: { search: '', endpoint: '', status: '', decided: '' }, // named as the interface names them
  agentSearch: '',
  openCall: null, // the call that is open; it stays so when the list has dropped it
  cursor: 0, // seq of the call under the list's cursor, 0 for the newest
  held: 0, // seq of the newest call in the list while it stands still, 0 where it moves
  underWay: [], // calls that have arrived and are not answered, as the fake reported them
  paused: false, // it stands still until told otherwise
  dialog: null, // {kind, ...} of the dialog that is open
  notices: [],
  drafts: {}, // agent id -> message being typed
};

// filled is the filter without what is not set.
export function filled() {
  return Object.fromEntries(Object.entries(state.filter).filter(([, value]) => value));
}

let draw = () => {};
let due = false;

export function onDraw(f) {
  draw = f;
}

// change merges the patch and has the page drawn in the next frame, so that a
// burst of calls costs one drawing.
export function change(patch) {
  Object.assign(state, patch);
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw();
  });
}

let lastNotice = 0;

// notice shows a sentence: kind is "done" or "failed".
export function notice(kind, words) {
  const id = ++lastNotice;
  change({ notices: [...state.notices, { id, kind, words }].slice(-4) });
  if (kind === 'done') setTimeout(() => dismiss(id), 5000);
}

export function dismiss(id) {
  change({ notices: state.notices.filter((n) => n.id !== id) });
}

// now is the time by the fake's clock, in ms.
export function now() {
  return Date.now() + state.clock.offset;
}
