// The state of the page. change updates it and redraws the page, at most once a frame.
// Views only read it. A form keeps what the user types until it is sent.
export const state = {
  route: { page: 'traffic', id: '' },
  link: 'connecting', // or live, or waiting
  info: null,
  locked: '', // why the page asks for the token; '' where it need not
  keys: null, // null until loaded, as are the other lists
  issued: null, // the key that was just issued: {label, key}
  agents: null, // the newest
  agentTotal: 0, // how many there are
  openAgent: null, // the agent of the address, null where there is none
  conversation: null, // of the agent that is open: {agent, exchanges, calls, total}
  faults: null,
  replies: null,
  clock: { offset: 0, advanced: 0 }, // offset: the fake's time minus the browser's, in ms
  limits: null, // of the key that is open: {key, rows}
  filter: { search: '', endpoint: '', status: '' }, // named as the interface names them
  openCall: null, // the call that is open, even if the list has dropped it
  tabStop: 0, // seq of the only row of the list that Tab reaches; 0 for the newest
  underWay: [], // calls that have arrived and are not answered, as the fake reported them
  notice: null, // the sentence about what the user did last: {kind, words}
};

// activeFilter returns the parts of the filter that are set, for the address and the fake.
// The fake refuses an empty parameter.
export function activeFilter() {
  return Object.fromEntries(Object.entries(state.filter).filter(([, value]) => value));
}

// draw redraws the page; app.js sets it. due is true while a frame waits to call it.
let draw = () => {};
let due = false;

// onDraw sets the function that draws the page, so that this module need not import the
// views.
export function onDraw(f) {
  draw = f;
}

// change merges the patch and has the page drawn in the next frame, so that a
// burst of calls costs one drawing.
export function change(patch) {
  Object.assign(state, patch);
  // The waiting frame draws this change too.
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw();
  });
}

// The timer that removes the notice.
let noticeEnds;

// notice shows a sentence: kind is "good" or "bad". A failure stays until it is
// dismissed or the next sentence comes.
export function notice(kind, words) {
  clearTimeout(noticeEnds);
  change({ notice: words ? { kind, words } : null });
  if (kind === 'good') noticeEnds = setTimeout(notice, 5000);
}

// now returns the time by the fake's clock, in ms, to compare with the fake's times. The
// clock may have been moved, and the browser may be on another machine.
export function now() {
  return Date.now() + state.clock.offset;
}
