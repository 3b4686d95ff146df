// The calls as they happen: the newest on top, with a filter, and the open call at the
// side.
import { h } from '../dom.js';
import { state, change, now } from '../store.js';
import { controlPath, headers } from '../api.js';
import { freeze, log, loadOlder } from '../sync.js';
import { go, hrefOf, setFilter } from '../route.js';
import { asCurl, exportLines } from '../snippets.js';
import { count, gap, plural, took } from '../format.js';
import { button, choice, code, head, request, statusTag, arrival, empty, mono, tag } from '../widgets.js';
import { attemptsOf, textOf, whyOf } from '../story.js';
import { CallDetail } from './calldetail.js';

// endpointChoices are the options of a select: none, in these words, and each endpoint.
export const endpointChoices = (none) => [['', none], ...(state.info?.endpoints ?? []).map((e) => [e, e])];

// The attempts are found once for all rows: each row needs those around it.
export function Traffic() {
  const call = state.openCall;
  const attempts = attemptsOf(log.all.calls);
  return h(
    'div.panel.traffic',
    { class: call && 'opened' },
    h(
      'section',
      { 'aria-label': 'Calls' },
      head('Traffic', totals(), h(Tools)),
      // Without calls there is nothing to filter.
      log.all.total > 0 && h(Filter),
      content(attempts),
    ),
    // The number of the call as key: another call is another component, with its own
    // fields.
    call && h(CallDetail, { call, attempts: attempts.get(call) ?? [], key: call.seq, onClose: close }),
  );
}

// Tools says how many calls have come while the list was frozen, and downloads what the fake
// holds. A link cannot carry the token, so a tab with one has no downloads.
function Tools() {
  const { unseen } = log;
  // From the newest call on, which is at the top.
  const goOn = () => {
    document.querySelector('.rows').scrollTo(0, 0);
    freeze(false);
  };
  return h(
    'div.tools.row',
    unseen > 0 && button(`${count(unseen)} new`, goOn),
    // A browser that downloads a link sends no header, so a tab with a token has no
    // such links.
    !headers().Authorization && [download('↓ Calls', 'calls.jsonl', 'calls.jsonl'), download('↓ State', 'state', 'state.json')],
  );
}

// download is a link to a file of the control interface.
function download(label, route, file) {
  return h('a', { href: controlPath(route), download: file, title: `Download ${file}` }, label);
}

// totals says how many calls there are, and with a filter how many of them pass.
function totals() {
  if (log.all.total === 0) return '';
  return log.found ? `${count(log.found.total)} of ${count(log.all.total)} calls` : plural(log.all.total, 'call');
}

// The statuses of the filter. The values are those that GET calls takes.
const statuses = [
  ['', 'Any answer'],
  ['2xx', '2xx success'],
  ['4xx', '4xx refused'],
  ['429', '429 rate limited'],
  ['5xx', '5xx failed'],
  ['0', 'No whole answer'],
];

// Filter asks the fake again after each change, since the fake may hold more calls than
// the page.
function Filter() {
  const set = (name) => (event) => setFilter({ [name]: event.target.value });
  return h(
    'form.filter.row',
    { role: 'search', onSubmit: (event) => event.preventDefault() },
    h('input', { type: 'search', 'aria-label': 'Filter calls by text', placeholder: 'Search calls', value: state.filter.search, onInput: set('search') }),
    choice('Endpoint', endpointChoices('Any endpoint'), { value: state.filter.endpoint, onChange: set('endpoint') }),
    choice('Status', statuses, { value: state.filter.status, onChange: set('status') }),
  );
}

// content is the list, or what to show while there is none.
function content(attempts) {
  // Before the fake has answered, nobody knows whether there are calls.
  if (!state.info) return empty('Connecting to the fake');
  if (log.all.calls.length + state.underWay.length === 0) return empty('No calls yet', h(Connect));
  // An empty list would say that nothing passes.
  if (log.searching) return empty('Searching');
  if (log.found?.total === 0) {
    return empty('No call passes the filter', button('Clear the filter', () => setFilter({ search: '', endpoint: '', status: '' })));
  }
  return h(List, { key: log.listNumber, attempts });
}

// Connect says how to make a first call.
function Connect() {
  // A key that was chosen with --key may be a secret, so the fake does not show it.
  const { key } = state.info;
  return h(
    'div.stack',
    h('p', 'Point your application at this fake', key ? ':' : ', with the key that the program printed. ', !key && h('a', { href: hrefOf('keys') }, 'Issue another if it is gone.')),
    code('Environment', exportLines(key ?? 'the key that the program printed')),
    h('p', 'Or make a first call by hand, in a shell with this environment:'),
    code('curl', asCurl({ method: 'GET', path: '/v1/status' })),
  );
}

// List shows the newest call first. It is frozen while somebody reads it, so that the
// row that was read is the row that opens.
function List({ attempts }) {
  // The mouse over the list, or a list that is scrolled, means that somebody reads.
  const read = ({ currentTarget: list }) => freeze(list.matches(':hover') || list.scrollTop > 0);
  const { calls, total } = log.shown;
  // One row takes part in Tab, or a keyboard would need a thousand strokes to leave the
  // list.
  const tabStop = calls.some((c) => c.seq === state.tabStop) ? state.tabStop : calls.at(-1)?.seq;
  const rowAt = (call, i) => {
    const tries = attempts.get(call) ?? [];
    return row(call, calls[i - 1], tries[tries.indexOf(call) + 1], call.seq === tabStop);
  };
  return h(
    'div.rows',
    { onScroll: read, onPointerEnter: read, onPointerLeave: read, onKeyDown: walk },
    state.underWay.length > 0 && h(UnderWay),
    // The list is in the order of the calls; what is drawn has the newest first.
    h('ol.lines', { 'aria-label': 'Calls, the newest first' }, calls.map(rowAt).reverse()),
    calls.length < total && button('Load older calls', loadOlder),
  );
}

// walk moves the focus along the rows, and the open call with it.
function walk(event) {
  // A page of rows is ten; Home is the newest.
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
  const rows = [...event.currentTarget.querySelectorAll('a.call')];
  const at = rows.indexOf(event.target);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  const to = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  to.focus();
  // With a call open, the arrows go from call to call; else they only move the focus.
  if (state.openCall) to.click();
}

// row is a call in the list. before is the call that came before it, next the attempt that came
// after it. Tab stops at one row of the list; the arrow keys reach the others.
function row(call, before, next, isTabStop) {
  const why = whyOf(call, next);
  const open = call.seq === state.openCall?.seq;
  return h(
    'li',
    { key: call.seq },
    h(
      'a.call',
      { href: hrefOf('traffic', call.seq), tabIndex: isTabStop ? 0 : -1, 'aria-current': open ? 'true' : undefined },
      h('span', statusTag(call)),
      h('span.what.row', h('span', request(call)), h('small.clip', { dir: 'auto' }, textOf(call)), call.fault && !why && tag(call.fault, 'fault')),
      h('small.meta.row', mono(call.key), h('span.took', took(call.took_ns / 1e9)), h('span.when', arrival(call.time), ' ', before && gap(before.time, call.time))),
      why && h('p', { dir: 'auto' }, why),
    ),
  );
}

// More calls than this are only counted: a load test has hundreds at once.
const mostUnderWay = 10;

// UnderWay are the calls that have no answer yet, with a clock that runs.
function UnderWay() {
  const all = state.underWay;
  return h(
    'section',
    { 'aria-label': 'Calls under way' },
    // They have no record yet, so they are no links.
    all.slice(0, mostUnderWay).map((call) =>
      h(
        'div.call',
        { key: call.trace_id },
        h('span', tag(`${Math.max(0, (now() - Date.parse(call.time)) / 1000).toFixed(0)} s`, 'warn')),
        h('span.what.row', h('span', request(call)), h('small', 'under way')),
        h('small.meta', mono(call.key)),
      ),
    ),
    all.length > mostUnderWay && h('small', `and ${count(all.length - mostUnderWay)} more`),
  );
}

// close closes the open call, and gives the focus to a row once the list is drawn.
function close() {
  change({ openCall: null });
  go('traffic');
  requestAnimationFrame(() => document.querySelector('.call[tabindex="0"]')?.focus());
}
