// Starts the page.
import { h, render } from './dom.js';
import { change, onDraw, state } from './store.js';
import { readRoute } from './route.js';
import { start } from './sync.js';
import { Shell } from './views/shell.js';

const root = document.getElementById('app');

onDraw(() => render(h(Shell), root));
window.addEventListener('hashchange', readRoute);
// Times in relative form grow old.
setInterval(() => change({}), 1000);
readRoute();
start();
