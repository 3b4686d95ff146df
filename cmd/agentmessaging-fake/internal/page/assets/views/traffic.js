// The calls as they happen.
import { h } from '../dom.js';
import { state, change, now } from '../store.js';
import { log, loadOlder } from '../sync.js';
import { go, hrefOf, setFilter } from '../route.js';
import { asCurl, exportLines } from '../snippets.js';
import { indexOf } from '../calls.js';
import { count, gap, plural, took } from '../format.js';
import { button, choice, code, head, mark, statusTag, arrival, empty, mono, tag } from '../parts/widgets.js';
import { VirtualList } from '../parts/virtual.js';
import { Strip } from './limits.js';
import { said } from '../story.js';
import { CallDetail } from './calldetail.js';

export const endpoints = [
  'GET /v1/status',
  'POST /v1/warmup',
  'GET /v1/byok',
  'PUT /v1/byok',
  'DELETE /v1/byok',
  'POST /v1/agents',
  'GET /v1/agents/{agent_id}',
  'POST /v1/agents/{agent_id}/messages',
  'POST /v1/agents/{agent_id}/channels/sms',
];

export function Traffic() {
  const call = state.openCall;
  return h(
    'div.panel.traffic',
    { class: call ? 'opened' : '' },
    h(
      'section.calls',
      { 'aria-label': 'Calls' },
      head('Traffic', sum(), h('div.row', null, h(Fresh), log.calls.length > 0 && h(Pause))),
      h(Strip),
      h(Filter),
      state.underWay.length > 0 && h(UnderWay),
      content(),
    ),
    call && h(CallDetail, { call, key: call.seq, onClose: close }),
  );
}

// While somebody reads the list it stands still, so that the row that was read
// is the row that opens.
function read(is) {
  if (!state.paused && is !== Boolean(state.held)) change({ held: is ? log.lastSeq : 0 });
}

// toTop shows the newest calls; those that come later show at once where held
// is 0, and else wait.
function toTop(held) {
  document.querySelector('.vlist')?.scrollTo(0, 0);
  change({ held });
}

function Pause() {
  const toggle = () => {
    toTop(state.paused ? 0 : log.lastSeq);
    change({ paused: !state.paused });
  };
  return button(state.paused ? 'Resume' : 'Pause', toggle, { kind: 'quiet', small: true, 'aria-pressed': String(state.paused) });
}

// waiting is how many calls have come since the list stands still.
function waiting() {
  if (!state.held) return 0;
  const { shown } = log;
  let n = 0;
  while (n < shown.length && shown[shown.length - 1 - n].seq > state.held) n++;
  return n;
}

// Fresh shows what has come meanwhile. It is in a line that is there anyway, so
// that nothing moves.
function Fresh() {
  const n = waiting();
  return n > 0 && button(`${count(n)} new`, () => toTop(log.lastSeq), { small: true, icon: 'up' });
}

function sum() {
  const all = log.kept;
  if (all === 0) return '';
  const fitting = log.filtered ? log.total : all;
  return fitting === all ? plural(all, 'call') : `${count(fitting)} of ${count(all)} calls`;
}

const classes = [
  ['2xx', '2xx success'],
  ['4xx', '4xx refused'],
  ['429', '429 rate limited'],
  ['5xx', '5xx failed'],
];
const statuses = [['', 'Any answer'], ...classes, ['0', 'No whole answer']];
const decisions = [['', 'Any decision'], ...classes, ['0', 'None, a fault acted']];

function Filter() {
  const { search, endpoint, status, decided } = state.filter;
  return h(
    'form.filter.row',
    { role: 'search', onSubmit: (e) => e.preventDefault() },
    h('input', { type: 'search', 'aria-label': 'Filter calls by text', placeholder: 'Path, key, address, header, text', value: search, onInput: (e) => setFilter({ search: e.target.value }) }),
    choice('Endpoint', [['', 'Any endpoint'], ...endpoints.map((e) => [e, e])], { value: endpoint, onChange: (e) => setFilter({ endpoint: e.target.value }) }),
    choice('Status', statuses, { value: status, onChange: (e) => setFilter({ status: e.target.value }) }),
    choice('Decided', decisions, { value: decided, onChange: (e) => setFilter({ decided: e.target.value }) }),
  );
}

function content() {
  if (state.locked && !state.info) return empty('This fake asks for a token', button('Enter the token', () => change({ dialog: { kind: 'token' } }), { kind: 'primary' }));
  if (!state.info) return h('div.loading', null, 'Connecting to the fake');
  if (log.calls.length === 0) return empty('No calls yet', h(Connect));
  if (!log.loaded) return h('div.loading', null, 'Searching');
  if (log.shown.length === 0) {
    return empty('No call passes the filter', h(Older), button('Clear the filter', () => setFilter({ search: '', endpoint: '', status: '', decided: '' })));
  }
  return list();
}

const mostUnderWay = 10;

// UnderWay are the calls that have no answer yet, with a clock that runs.
function UnderWay() {
  const all = state.underWay;
  return h(
    'section.underway',
    { 'aria-label': 'Calls under way' },
    all.slice(0, mostUnderWay).map((call) =>
      h('div.row', { key: call.trace_id }, tag(`${Math.max(0, (now() - Date.parse(call.time)) / 1000).toFixed(0)} s`, 'warn'), h('span.method', null, call.method), mono(call.path), h('span.soft', null, mono(call.key)), h('span.soft', null, 'under way')),
    ),
    all.length > mostUnderWay && h('p.hint', null, `and ${count(all.length - mostUnderWay)} more`),
  );
}

// What to do where nothing has happened yet.
function Connect() {
  const { key } = state.info;
  return h(
    'div.stack',
    null,
    h('p', null, 'Point your application at this fake', key ? ':' : ', with the key that the program printed. ', !key && h('a', { href: hrefOf('keys') }, 'Issue another if it is gone.')),
    code('Environment', exportLines(key ?? 'the key that the program printed'), { kind: 'snippet' }),
    h('p', null, 'Or make a first call by hand, in a shell with this environment:'),
    code('curl', asCurl({ method: 'GET', path: '/v1/status' }), { kind: 'snippet' }),
  );
}

// The log has the oldest call first, the list shows the newest first.
function list() {
  const behind = waiting();
  const last = log.shown.length - 1 - behind;
  const at = (i) => log.shown[last - i];
  const position = indexOf(log.shown, state.cursor);
  return [
    h('div.columns.label', { 'aria-hidden': 'true' }, columns.map(([name, words]) => h('span', { class: `c-${name}` }, words))),
    h(VirtualList, {
      label: 'Calls, the newest first',
      length: last + 1,
      generation: log.generation,
      rowHeight: 38,
      cursor: position < 0 ? 0 : Math.max(0, last - position),
      keyAt: (i) => at(i).seq,
      row: (i) => row(at(i), at(i + 1)),
      onMove: (i) => (state.openCall ? go('traffic', at(i).seq) : change({ cursor: at(i).seq })),
      onOpen: (i) => go('traffic', at(i).seq),
      onRead: read,
    }),
    h(Older),
  ];
}

// The fake may have kept more calls than the page holds.
function Older() {
  return log.hasOlder ? h('div.older.row', null, button('Load older calls', loadOlder, { small: true })) : null;
}

// A column is [name, words above it, what of a call is in it].
const columns = [
  ['status', 'Status', statusTag],
  ['what', 'Endpoint', (call) => [h('span.method', null, call.method), path(call.path), h('span.soft.words.clip', { dir: 'auto' }, said(call)), mark(call)]],
  ['key', 'Key', (call) => mono(call.key)],
  ['took', 'Took', (call) => took(call.took_ns)],
  ['trace', 'Trace id', (call) => mono(call.trace_id)],
  ['when', 'Arrived', (call, before) => [arrival(call.time), h('span.gap', null, before && gap(before.time, call.time))]],
];

// row draws a call; before is the one that came before it.
function row(call, before) {
  return columns.map(([name, , cell]) => h('span.clip', { class: `c-${name} ${/status|what/.test(name) ? '' : 'soft'}` }, cell(call, before)));
}

// path may be cut in the middle, but not its end, which tells the operations on
// an agent apart.
function path(whole) {
  const cut = whole.lastIndexOf('/', whole.length - 2);
  return h('span.path', null, h('span.mono.clip', null, whole.slice(0, cut)), h('span.mono.clip', null, whole.slice(cut)));
}

function close() {
  go('traffic');
  requestAnimationFrame(() => document.querySelector('.vlist')?.focus());
}
