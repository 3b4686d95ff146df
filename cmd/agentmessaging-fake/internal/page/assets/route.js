// The part of the address after the # says what is shown, so that a panel can be
// bookmarked and the back button works. It has the form #/page/id?filter, such as
// #/traffic/17?status=429. Nothing else changes which panel is open.
import { state, change, activeFilter } from './store.js';
import { load } from './load.js';
import { openCall, showFound } from './sync.js';

// The panels and their names, in the order of the bar. Without a panel in the address, the
// page shows the traffic.
export const pages = { traffic: 'Traffic', keys: 'Keys', agents: 'Agents', rules: 'Rules' };

// hrefOf returns the address of a panel, or of one thing in it. The address of the traffic
// keeps the filter, so that closing a call does not lose it.
export function hrefOf(page, id = '') {
  const query = page === 'traffic' ? String(new URLSearchParams(activeFilter())) : '';
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}${query && `?${query}`}`;
}

// go opens a panel as a click on its link would.
export function go(page, id) {
  location.hash = hrefOf(page, id);
}

// setFilter replaces the address, so that the Back button does not undo a search
// letter by letter.
export function setFilter(patch) {
  takeFilter({ ...state.filter, ...patch });
  history.replaceState(null, '', hrefOf('traffic', state.openCall?.seq));
}

// takeFilter applies a filter. That starts a new list, so Tab stops at its newest row.
function takeFilter(filter) {
  change({ filter, tabStop: 0 });
  showFound();
}

// readRoute reads the address into the state and loads what it needs. The address may have
// been typed, so it may hold anything. An unknown panel means the traffic.
export function readRoute() {
  const [path, query] = location.hash.split('?');
  const [, page, id = ''] = path.split('/');
  const known = Object.hasOwn(pages, page) ? page : 'traffic';
  // Opening anything else drops the text of a new key.
  const issued = state.issued?.label === id ? state.issued : null;
  change({ route: { page: known, id: decode(id) }, conversation: null, openAgent: null, issued });
  document.title = `${pages[known]} · Agent Messaging fake`;
  if (known === 'traffic') readTraffic(new URLSearchParams(query));
  if (!state.info) return;
  load('limits');
  if (known === 'agents') load('agents', 'conversation');
}

// readTraffic reads the filter and the open call. It loads only what differs, since the page
// itself changes the address too.
function readTraffic(query) {
  const filter = Object.fromEntries(Object.keys(state.filter).map((name) => [name, query.get(name) ?? '']));
  if (Object.keys(filter).some((name) => filter[name] !== state.filter[name])) takeFilter(filter);
  const seq = Number(state.route.id) || 0;
  if (seq !== (state.openCall?.seq ?? 0)) openCall(seq);
}

// decode decodes a part of the address. A part that is not URL encoded was typed by hand,
// and stays unchanged.
function decode(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
