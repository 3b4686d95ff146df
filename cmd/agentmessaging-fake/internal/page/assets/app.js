// Starts the page, and keeps the focus when it is redrawn.
//
// How the page works: sync.js follows the fake's stream of events, load.js fetches the
// lists that have changed, and both put what they get into the state of store.js. Each
// change of the state has the whole page drawn from it, by views/shell.js. What the
// user does becomes a request to the control interface (api.js); its effect comes back
// over the stream, so no view changes a list by itself.
import { h, render } from './dom.js';
import { change, onDraw } from './store.js';
import { readRoute } from './route.js';
import { start } from './sync.js';
import { Shell } from './views/shell.js';

const root = document.getElementById('app');

// What has the focus may be removed: the section that it was in takes it then.
let home;
document.addEventListener('focusin', (event) => (home = event.target.closest('section, aside, main')));

// The view library draws over elements that stay; only one that is gone loses the focus.
onDraw(() => {
  const had = document.activeElement !== document.body;
  render(h(Shell), root);
  if (!had || document.activeElement !== document.body || !home?.isConnected) return;
  home.tabIndex = -1;
  home.focus();
});
window.addEventListener('hashchange', readRoute);
// Relative times such as "5 s ago" go out of date, so every second all is redrawn.
setInterval(() => change({}), 1000);
// The address says what is shown first; start then connects.
readRoute();
start();
