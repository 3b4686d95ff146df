// The state of the page, and the promise to draw it once a frame at most. Whatever the
// page shows comes from here. Only change writes it; views read it and keep nothing but
// what a form holds while it is filled in.
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
  clock: { offset: 0, advanced: 0 }, // offset: the fake's time less ours, in ms
  limits: null, // of the key that is open: {key, rows}
  filter: { search: '', endpoint: '', status: '' }, // named as the interface names them
  openCall: null, // the call that is open; it stays so when the list has dropped it
  tabStop: 0, // seq of the one row of the list that Tab stops at, 0 for the newest
  underWay: [], // calls that have arrived and are not answered, as the fake reported them
  notice: null, // the sentence about what the user did last: {kind, words}
};

// activeFilter is the filter without what is not set, as the address and the fake take it:
// the fake refuses an empty parameter.
export function activeFilter() {
  return Object.fromEntries(Object.entries(state.filter).filter(([, value]) => value));
}

// draw is what app.js gave to onDraw; due says that a frame will call it.
let draw = () => {};
let due = false;

// onDraw says what draws the page. app.js calls it once, which spares this module the
// views.
export function onDraw(f) {
  draw = f;
}

// change merges the patch and has the page drawn in the next frame, so that a
// burst of calls costs one drawing.
export function change(patch) {
  Object.assign(state, patch);
  // The frame that is due will draw this change too.
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw();
  });
}

// The timer that takes the present notice away.
let noticeEnds;

// notice shows a sentence: kind is "good" or "bad". A failure stays until it is
// dismissed or the next sentence comes.
export function notice(kind, words) {
  clearTimeout(noticeEnds);
  change({ notice: words ? { kind, words } : null });
  if (kind === 'good') noticeEnds = setTimeout(notice, 5000);
}

// now is the time by the fake's clock, in ms. Everything that is compared with a time
// of the fake uses it: the clock may be moved, and the browser may be on another
// machine.
export function now() {
  return Date.now() + state.clock.offset;
}
