// The frame around the panels: the bar at the top with the connection, the clock and
// reset, the links to the panels, and the line for notices.
import { h } from '../dom.js';
import { state, notice, now } from '../store.js';
import { act, control, setToken } from '../api.js';
import { pages, hrefOf } from '../route.js';
import { log, start } from '../sync.js';
import { count, exact, span, timeOfDay } from '../format.js';
import { button, empty, form, input, submit, tag } from '../widgets.js';
import { Traffic } from './traffic.js';
import { Keys } from './keys.js';
import { Agents } from './agents.js';
import { Rules } from './rules.js';

// The view of each panel. Each draws itself from the state.
const views = { traffic: Traffic, keys: Keys, agents: Agents, rules: Rules };

// Shell is the whole page, and all that app.js draws.
export function Shell() {
  const { page } = state.route;
  return [
    h(Header),
    // Panels are links, so a browser can open one in another tab.
    h('nav', { 'aria-label': 'Panels' }, h('ul.row', Object.entries(pages).map(item))),
    h('main', h(state.locked ? Locked : views[page])),
    h(Notice),
  ];
}

// item is the link to a panel, with how many things are in it. A sum that is not loaded
// yet is NaN, which is not above 0, so no number shows.
function item([page, name]) {
  const { faults, replies } = state;
  const n = { traffic: log.all.total, keys: state.keys?.length, agents: state.agentTotal, rules: faults?.length + replies?.length }[page];
  // aria-current marks the open panel for a screen reader, and by it the style sheet
  // does.
  const current = state.route.page === page ? 'page' : undefined;
  return h('li', { key: page }, h('a.row', { href: hrefOf(page), 'aria-current': current }, name, n > 0 && h('small', count(n))));
}

// Locked takes the place of every panel: without the token none has anything to show.
function Locked() {
  // The page tries the token by connecting with it: a wrong one leads back here.
  const take = ({ token }) => {
    setToken(token.trim());
    start();
  };
  return empty(
    'Control token',
    h('p', { role: 'alert' }, state.locked),
    form('Control token', take, input('Token', { name: 'token', type: 'password', required: true, autoComplete: 'off' }), h('div', submit('Continue'))),
    h('small', 'The token stays in this tab.'),
  );
}

// Notice is a line below the panel: it covers nothing.
function Notice() {
  const { kind, words } = state.notice ?? {};
  return h(
    'div.notice',
    { class: kind, hidden: !words },
    // Two places that are always there: a screen reader reads what changes in them, a
    // failure at once and a success when it has time.
    h('div.between', h('span', { role: 'status' }, kind === 'good' && words), h('span', { role: 'alert' }, kind === 'bad' && words), button('Dismiss', () => notice())),
  );
}

// Header is the bar at the top. data-phase names the state of the connection for tests.
function Header() {
  // The words and tones of the three states of the connection.
  const link = { live: ['Live', 'good'], connecting: ['Connecting', 'warn'], waiting: ['Disconnected', 'bad'] };
  return h(
    'header.row',
    h('h1.row', h('img', { src: '/_fake/assets/icon.svg', alt: '', width: 26, height: 26 }), 'Agent Messaging', tag('fake')),
    h('div.row', { role: 'status', 'data-phase': state.link }, tag(...link[state.link])),
    h(Clock),
    button('Reset', null, { popovertarget: 'reset' }),
    h(Reset),
  );
}

// How far the buttons of the clock move it: by each length of a window of interface
// 8.1.
const steps = [
  ['1m', '+1 min'],
  ['1h', '+1 h'],
  ['24h', '+1 day'],
];

// Clock shows the fake's time, and how far it was moved.
function Clock() {
  const { advanced } = state.clock;
  return h(
    'div.clock.row',
    { role: 'group', 'aria-label': 'Clock of the fake', title: 'The clock of the fake. Only a reset takes it back.' },
    h('time', { dateTime: new Date(now()).toISOString(), title: exact(now()) }, timeOfDay(now())),
    // The time shows like any other, so a mark says that it was moved.
    advanced > 0 && tag(`+${span(advanced, 2)}`),
    steps.map(([duration, label]) => button(label, () => advance(duration, label))),
  );
}

// advance moves the fake's clock. Limits open whose window ends meanwhile.
function advance(duration, label) {
  act(`The clock moved ${label}. Only a reset takes it back.`, () => control('POST', ['clock'], { duration }));
}

// Reset asks before it resets the fake. It is a popover: the browser opens and closes it, and
// gives the focus back.
function Reset() {
  // Both buttons close the question; the focus begins at the one that changes nothing.
  const hide = { popovertarget: 'reset', popovertargetaction: 'hide' };
  const reset = () => act('The fake is as it was when it started.', () => control('POST', ['reset']));
  return h(
    'div.card',
    { id: 'reset', popover: 'auto', role: 'dialog', 'aria-label': 'Reset the fake?' },
    h(
      'div.stack',
      h('h2', 'Reset the fake?'),
      h('p', 'You cannot undo this. The fake goes back to how it started: with what the files of --state and --replies had, or else empty. Every call and every change since then is gone, and the clock goes back to the present. The first key keeps its text.'),
      h('div.row.end', button('Cancel', null, { autofocus: true, ...hide }), button('Reset', reset, { class: 'bad', ...hide })),
    ),
  );
}
