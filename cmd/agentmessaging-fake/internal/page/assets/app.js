// Starts the page.
import { h, render } from './dom.js';
import { change, onDraw, state } from './store.js';
import { readRoute } from './route.js';
import { loadWorlds } from './load.js';
import { start } from './sync.js';
import { Shell } from './views/shell.js';

const root = document.getElementById('app');

onDraw(() => render(h(Shell), root));
window.addEventListener('hashchange', readRoute);
// Another program may have made a world meanwhile; no event tells of it.
window.addEventListener('focus', () => state.info && loadWorlds());
// Times in relative form grow old.
setInterval(() => change({}), 1000);
readRoute();
start();
