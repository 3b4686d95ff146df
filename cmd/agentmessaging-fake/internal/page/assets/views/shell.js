// The frame around the panels.
import { h } from '../dom.js';
import { state, notice } from '../store.js';
import { setToken } from '../api.js';
import { pages, hrefOf } from '../route.js';
import { log, start } from '../sync.js';
import { count } from '../format.js';
import { button, empty, form, input, submit } from '../widgets.js';
import { Header } from './header.js';
import { Traffic } from './traffic.js';
import { Keys } from './keys.js';
import { Agents } from './agents.js';
import { Rules } from './rules.js';
import { Decisions } from './decisions.js';

const views = { traffic: Traffic, keys: Keys, agents: Agents, rules: Rules, decisions: Decisions };

export function Shell() {
  const { page } = state.route;
  return [
    h(Header),
    h('nav', { 'aria-label': 'Panels' }, h('ul', pages.map(item))),
    h('main', h(state.locked ? Locked : views[page])),
    h(Notice),
  ];
}

function item({ page, name }) {
  const { faults, replies } = state;
  const n = { traffic: log.kept, keys: state.keys?.length, agents: state.agentTotal, rules: faults?.length + replies?.length }[page];
  const current = state.route.page === page ? 'page' : undefined;
  return h('li', { key: page }, h('a.row', { href: hrefOf(page), 'aria-current': current }, name, n > 0 && h('small', count(n))));
}

function Locked() {
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
    h('div.between', h('span', { role: 'status' }, kind === 'done' && words), h('span', { role: 'alert' }, kind === 'failed' && words), button('Dismiss', () => notice())),
  );
}
