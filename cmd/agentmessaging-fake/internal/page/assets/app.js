// Starts the page, and keeps the focus when it is redrawn.
//
// How the page works: sync.js follows the fake's stream of events, load.js fetches the
// lists that have changed, and both write into the state of store.js. Each change of the
// state redraws the whole page (views/shell.js). What the user does becomes a request to
// the control interface (api.js). Its effect comes back over the stream, so no view
// changes a list by itself.
import { h, render } from './dom.js';
import { change, onDraw } from './store.js';
import { readRoute } from './route.js';
import { start } from './sync.js';
import { Shell } from './views/shell.js';

const root = document.getElementById('app');

// Drawing may remove the element that has the focus. Its section then gets the focus.
let home;
document.addEventListener('focusin', (event) => (home = event.target.closest('section, aside, main')));

// An element that stays keeps the focus.
onDraw(() => {
  const had = document.activeElement !== document.body;
  render(h(Shell), root);
  if (!had || document.activeElement !== document.body || !home?.isConnected) return;
  home.tabIndex = -1;
  home.focus();
});
window.addEventListener('hashchange', readRoute);
// Relative times such as "5 s ago" change, so the page is redrawn every second.
setInterval(() => change({}), 1000);
// The address decides what is shown first.
readRoute();
start();
