// The frame around the panels.
import { h } from '../dom.js';
import { state, dismiss } from '../store.js';
import { pages, hrefOf } from '../route.js';
import { log } from '../sync.js';
import { count } from '../format.js';
import { icon } from '../parts/icons.js';
import { button } from '../parts/widgets.js';
import { Header } from './header.js';
import { Traffic } from './traffic.js';
import { Keys } from './keys.js';
import { Agents } from './agents.js';
import { Faults } from './faults.js';
import { Replies } from './replies.js';
import { CurrentDialog } from './dialogs.js';

const views = { traffic: Traffic, keys: Keys, agents: Agents, faults: Faults, replies: Replies };

export function Shell() {
  return h(
    'div.shell',
    null,
    h('a.skip', { href: '#main', onClick: skip }, 'Skip to the panel'),
    h(Header),
    h(Nav),
    h('main', { id: 'main', tabIndex: -1 }, h('h1.unseen', null, pages.find((p) => p.page === state.route.page).name), h(views[state.route.page])),
    h('div.notices', null, h('div', { role: 'status' }, notices('done')), h('div', { role: 'alert' }, notices('failed'))),
    state.dialog && h(CurrentDialog),
  );
}

// The part behind the # is the route, so the link moves the focus itself.
function skip(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function Nav() {
  return h('nav.nav', { 'aria-label': 'Panels' }, h('ul', null, pages.map(item)));
}

function item({ page, name }) {
  const n = { traffic: log.kept, keys: state.keys?.length, agents: state.agentTotal, faults: state.faults?.length }[page];
  const current = state.route.page === page ? 'page' : undefined;
  return h('li', { key: page }, h('a.row', { href: hrefOf(page), 'aria-current': current }, icon(page), h('span', null, name), n > 0 && h('span.badge', null, count(n))));
}

function notices(kind) {
  return state.notices.filter((n) => n.kind === kind).map(notice);
}

function notice({ id, kind, words }) {
  return h(
    'div.notice.row',
    { key: id, class: kind },
    icon(kind === 'done' ? 'check' : 'faults'),
    h('span', null, words),
    button('Dismiss', () => dismiss(id), { kind: 'quiet', small: true }),
  );
}
