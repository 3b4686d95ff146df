// What is shown stands behind the # of the address, so that a panel can be
// bookmarked and the back button works; the world stands in the query.
import { state, change } from './store.js';
import { loadAgents, loadConversation, loadLimits } from './sync.js';

export const pages = [
  { page: 'traffic', name: 'Traffic' },
  { page: 'keys', name: 'Keys' },
  { page: 'agents', name: 'Agents' },
  { page: 'faults', name: 'Faults' },
];

export function hrefOf(page, id = '') {
  return id ? `#/${page}/${encodeURIComponent(id)}` : `#/${page}`;
}

export function go(page, id) {
  location.hash = hrefOf(page, id);
}

// readRoute takes anything: the address may have been typed.
export function readRoute() {
  const [, page, id = ''] = location.hash.split('/');
  const known = pages.some((p) => p.page === page) ? page : 'traffic';
  change({ route: { page: known, id: decode(id) }, conversation: null });
  document.title = `${pages.find((p) => p.page === known).name} · Agent Messaging fake`;
  if (!state.info) return;
  loadLimits();
  if (known === 'agents') {
    loadAgents();
    loadConversation();
  }
}

function decode(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
