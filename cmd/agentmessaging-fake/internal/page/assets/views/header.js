// The bar at the top: where the connection stands, the world, the clock, reset.
import { h } from '../dom.js';
import { state, change, now } from '../store.js';
import { act, request, worldPath } from '../api.js';
import { takeClock, reload } from '../sync.js';
import { exact, timeOfDay, span } from '../format.js';
import { icon, mark } from '../parts/icons.js';
import { button, choice } from '../parts/widgets.js';

export function Header() {
  return h(
    'header.top',
    null,
    h('div.brand', null, mark(), h('span.name', null, 'Agent Messaging'), h('span.kind', null, 'fake')),
    h(World),
    h('div.spring'),
    h(Clock),
    h(Link),
    button('Reset', askReset, { icon: 'reset' }),
  );
}

const phases = {
  live: ['good', 'Live'],
  connecting: ['warn', 'Connecting'],
  waiting: ['bad', 'Disconnected'],
};

function Link() {
  const { phase, retryAt } = state.link;
  const [tone, words] = phases[phase];
  const seconds = Math.max(1, Math.ceil((retryAt - Date.now()) / 1000));
  const retry = phase === 'waiting' ? `, again in ${seconds} s` : '';
  return h('div.link', { class: tone, role: 'status', 'data-phase': phase }, h('span.dot', { 'aria-hidden': 'true' }), words, h('span', { 'aria-hidden': 'true' }, retry));
}

// A world that is shown begins anew, with nothing of the last one: the page
// loads again.
function World() {
  const names = state.worlds.map((w) => w.name);
  if (names.length < 2 && state.world === 'default') return null;
  const options = [...new Set(['default', ...names, state.world])].map((name) => [name, name]);
  return h('label.world', null, h('span', null, 'World'), choice('World', options, { value: state.world, onChange: showWorld }));
}

function showWorld(event) {
  location.search = `?world=${encodeURIComponent(event.target.value)}`;
}

const steps = [
  ['1m', '+1 min'],
  ['1h', '+1 h'],
  ['24h', '+1 day'],
];

function Clock() {
  const { advanced } = state.clock;
  return h(
    'div.clock',
    { role: 'group', 'aria-label': 'Clock of the fake' },
    icon('clock'),
    h('time', { dateTime: new Date(now()).toISOString(), title: exact(now()) }, timeOfDay(now())),
    advanced > 0 && h('span.advanced', { title: 'How far the clock has been moved' }, `+${span(advanced, 2)}`),
    h('div.steps', null, steps.map(([duration, label]) => button(label, () => advance(duration, label), { key: label, small: true }))),
  );
}

function advance(duration, label) {
  act(`The clock moved ${label}.`, async () => {
    takeClock(await request('POST', worldPath('clock/advance'), { duration }));
    reload('clock');
  });
}

function askReset() {
  const run = () => act(`The world ${state.world} is empty again.`, () => request('POST', worldPath('reset')));
  change({
    dialog: {
      kind: 'confirm',
      title: `Reset the world ${state.world}?`,
      words: 'Its agents, conversations, calls, faults, scripted replies and what its keys have spent are gone afterwards. Its first key and its settings stay as the program started them; other keys are gone. Other worlds stay as they are.',
      label: 'Reset',
      run,
    },
  });
}
