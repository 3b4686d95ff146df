// The bar at the top: the connection, the clock, reset.
import { h } from '../dom.js';
import { state, now } from '../store.js';
import { act, control } from '../api.js';
import { exact, timeOfDay, span } from '../format.js';
import { button, tag } from '../widgets.js';

export function Header() {
  return h(
    'header.top.row',
    h('h1.brand.row', h('img.mark', { src: '/_fake/assets/icon.svg', alt: '', width: 26, height: 26 }), h('span', 'Agent Messaging'), tag('fake')),
    h(Clock),
    h(Link),
    button('Reset', null, { small: true, popovertarget: 'reset' }),
    h(Reset),
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
  const retry = phase === 'waiting' && h('span.retry', { 'aria-hidden': 'true' }, `again in ${seconds} s`);
  return h('div.link.row', { class: tone, role: 'status', 'data-phase': phase }, h('span.dot', { 'aria-hidden': 'true' }), words, retry);
}

const steps = [
  ['1m', '+1 min'],
  ['1h', '+1 h'],
  ['24h', '+1 day'],
];

function Clock() {
  const { advanced } = state.clock;
  return h(
    'div.clock.row',
    { role: 'group', 'aria-label': 'Clock of the fake', title: 'The clock of the fake. Only a reset takes it back.' },
    h('time', { dateTime: new Date(now()).toISOString(), title: exact(now()) }, timeOfDay(now())),
    advanced > 0 && h('span.advanced', { title: 'How far the clock has been moved' }, `+${span(advanced, 2)}`),
    steps.map(([duration, label]) => button(label, () => advance(duration, label), { key: label, small: true })),
  );
}

function advance(duration, label) {
  act(`The clock moved ${label}. Only a reset takes it back.`, () => control('POST', ['clock'], { duration }));
}

// The browser opens and closes a popover, and gives the focus back.
function Reset() {
  const hide = { popovertarget: 'reset', popovertargetaction: 'hide' };
  return h(
    'div.card.popover',
    { id: 'reset', popover: 'auto', role: 'dialog', 'aria-label': 'Reset the fake?' },
    h(
      'div.stack',
      h('h2', 'Reset the fake?'),
      h('p', 'You cannot undo this. Agents, conversations, calls, rules and all keys but the first are deleted, and every limit is open again. The clock goes back to the present. The first key and the settings stay as they are.'),
      h('div.row.actions', button('Cancel', null, { autofocus: true, ...hide }), button('Reset', () => act('The fake is empty again.', () => control('POST', ['reset'])), { kind: 'danger', ...hide })),
    ),
  );
}
