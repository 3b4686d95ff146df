// The frame around the panels.
import { h } from '../dom.js';
import { state, dismiss } from '../store.js';
import { pages, hrefOf } from '../route.js';
import { log } from '../sync.js';
import { count } from '../format.js';
import { icon } from '../parts/icons.js';
import { button, empty } from '../parts/widgets.js';
import { Header } from './header.js';
import { Traffic } from './traffic.js';
import { Keys } from './keys.js';
import { Agents } from './agents.js';
import { Faults } from './faults.js';
import { World } from './world.js';
import { CurrentDialog } from './dialogs.js';

const views = { traffic: Traffic, keys: Keys, agents: Agents, faults: Faults, world: World };

export function Shell() {
  return h(
    'div.shell',
    null,
    h('a.skip', { href: '#main', onClick: skip }, 'Skip to the panel'),
    h(Header),
    h(Nav),
    h('main', { id: 'main', tabIndex: -1 }, state.worldMissing ? h(NoWorld) : h(views[state.route.page])),
    h('div.notices', null, h('div', { role: 'status' }, notices('done')), h('div', { role: 'alert' }, notices('failed'))),
    state.dialog && h(CurrentDialog),
  );
}

function NoWorld() {
  return empty('There is no such world', h('p', null, 'It may have been deleted. This page shows it as soon as it is made. ', h('a', { href: '/' }, 'Open the world default')));
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
  const n = { traffic: log.calls.length, keys: state.keys?.length, agents: state.agentTotal, faults: state.faults?.length }[page];
  const current = state.route.page === page ? 'page' : undefined;
  return h('li', { key: page }, h('a.row', { href: hrefOf(page), 'aria-current': current }, icon(page), h('span', null, name), n > 0 && h('span.badge', null, count(n))));
}

function notices(kind) {
  return state.notices.filter((n) => n.kind === kind).map(notice);
}

function notice({ id, kind, words, undo }) {
  const takeBack = () => {
    dismiss(id);
    undo();
  };
  return h(
    'div.notice.row',
    { key: id, class: kind },
    icon(kind === 'done' ? 'check' : 'faults'),
    h('span', null, words),
    undo && button('Undo', takeBack, { small: true }),
    button('Dismiss', () => dismiss(id), { kind: 'quiet', small: true }),
  );
}
