// Keys with their plans and limits (interface 5 and 8). A key's text is shown when it
// is issued, and never again.
import { h } from '../dom.js';
import { state, change, now } from '../store.js';
import { act, control } from '../api.js';
import { openKey } from '../load.js';
import { go, hrefOf } from '../route.js';
import { count, plural, relative } from '../format.js';
import { exportLines } from '../snippets.js';
import { button, choice, code, form, head, select, submit, tag, mono, ago, exactAndAgo, facts, empty, item } from '../widgets.js';

// The plans of interface 8.2, the default one first.
const plans = ['preview', 'pro', 'byok', 'free'].map((plan) => [plan, plan]);

// The key of the address is open, or else the default one: a first visit shows limits.
export function Keys() {
  const keys = state.keys ?? [];
  // null while the keys are not loaded, undefined where the address names none of them.
  const open = keys.find((k) => k.label === openKey());
  return h(
    'div.panel.two',
    { class: state.route.id && 'opened' },
    h(
      'section',
      { 'aria-label': 'All keys' },
      head('Keys', keys.length > 0 && plural(keys.length, 'key')),
      h('div.card', form('Issue a key', issue, select('Plan of the new key', plans, { name: 'plan' }), submit('Issue key'))),
      h('ul.items.lines', keys.map((k) => row(k, k === open))),
    ),
    h(
      'section.main',
      { 'aria-label': 'The open key' },
      open ? key(open) : state.keys && empty('No such key', h('p', 'Issue a key, or open one from the list.')),
    ),
  );
}

// row is a key in the list.
function row(k, open) {
  return item('keys', k.label, open, keyState(k), h('span.clip', `Plan ${k.plan}`, k.default && ', default', !k.dashboard && ', not from the dashboard'), ago(k.issued_at));
}

// keyState says whether calls with the key are served: a revoked one is answered 401,
// one on the free plan 402.
function keyState(k) {
  // A revoked key is refused whatever its plan.
  if (k.revoked) return tag('revoked', 'bad');
  return k.plan === 'free' ? tag('inactive', 'warn') : tag('active', 'good');
}

// issue makes a key and opens it, since only there its text is shown.
function issue({ plan }) {
  // No notice: the key that opens shows that it worked.
  act('', async () => {
    const issued = await control('POST', ['keys'], { plan });
    change({ issued });
    go('keys', issued.label);
  });
}

// key is the open key: its state, its plan, and its limits at this moment.
function key(k) {
  return [
    h(
      'div.between',
      h('h2.row', mono(k.label), keyState(k)),
      h(
        'div.row',
        // The plan of a revoked key makes no difference, so it cannot be changed.
        choice(`Plan of ${k.label}`, plans, { value: k.plan, disabled: k.revoked, onChange: (e) => changePlan(k, e.target) }),
        k.revoked ? button('Reinstate', () => revoke(k, false, 'is valid again.')) : button('Revoke', () => revoke(k, true, 'is revoked: calls with it are answered 401.'), { class: 'bad' }),
      ),
    ),
    state.issued?.label === k.label && secret(state.issued.key),
    facts([
      ['Issued', exactAndAgo(k.issued_at)],
      ['By', k.dashboard ? 'the dashboard' : 'not the dashboard: BYOK operations answer 403'],
    ]),
    h(Limits, { label: k.label, rows: state.limits?.key === k.label ? state.limits.rows : null }),
  ];
}

// secret is the only place that shows a key, and only once: the fake keeps it, the
// page does not.
function secret(value) {
  return h('section.stack', { 'aria-label': 'The new key' }, h('p', 'Copy the key now: it is not shown again once you leave.'), code('API key', value), code('Environment', exportLines(value)));
}

// The select shows the new plan at once, so a refusal has to put it back.
async function changePlan(k, chosen) {
  const plan = chosen.value;
  // The stream brings the new plan to the list.
  const done = await act(`${k.label} is on the plan ${plan}.`, () => control('PATCH', ['keys', k.label], { plan }));
  if (!done) chosen.value = k.plan;
}

// revoke makes a key invalid or valid again. Its agents and limits stay.
function revoke({ label }, revoked, words) {
  act(`${label} ${words}`, () => control('PATCH', ['keys', label], { revoked }));
}

// The limits by their names in the interface (8.1), in the words of a person.
const limitNames = {
  key_minute: 'Requests per minute',
  ip_minute: 'Requests per minute, address',
  key_day: 'Requests per day',
  agent_create_key_day: 'Agents per day',
  agent_create_ip_minute: 'Agents per minute, address',
  byok_set_key_hour: 'Provider keys per hour',
  warmup_key_hour: 'Warm-ups per hour',
};

// A limit that this page does not know goes by its name in the interface.
const nameOf = (row) => limitNames[row.limit_key] ?? row.limit_key;

// Limits are the gauges of all limits of a key, those per address included.
function Limits({ label, rows }) {
  return h(
    'section.stack',
    { 'aria-label': 'Limits' },
    h('h3', 'Limits'),
    rows ? h('ul.lines', rows.map((row) => h(Gauge, { key: row.limit_key, label, row }))) : h('small', 'Loading'),
  );
}

// Gauge shows how much of a limit is left, in words and as a bar, and spends all of it
// on a click: so a client meets its 429 without 60 calls.
function Gauge({ label, row }) {
  const name = nameOf(row);
  return h(
    'li.gauge.between',
    { 'data-limit': row.limit_key },
    h('div', name, ' ', h('small', mono(row.limit_key))),
    // The bar says nothing that the words do not, so a screen reader skips it.
    h('span.bar', { class: toneOf(row), 'aria-hidden': 'true', style: { '--share': `${share(row) * 100}%` } }),
    h('div', row.max === null ? 'No limit' : `${count(row.left)} of ${count(row.max)} left`, row.opens_at && `, opens ${relative(Date.parse(row.opens_at), now())}`),
    row.max !== null && button('Exhaust', () => exhaust(label, row), { 'aria-label': `Exhaust ${name}` }),
  );
}

// share is how much of a limit is spent, from 0 to 1.
function share({ left, max }) {
  return max ? Math.min(1, (max - left) / max) : 0;
}

// toneOf is the colour of a limit: from four fifths on it is a warning.
function toneOf(row) {
  if (row.left === 0) return 'bad';
  return share(row) >= 0.8 ? 'warn' : 'good';
}

// exhaust spends what is left of a limit. The gauge changes when the stream reports it.
function exhaust(label, row) {
  act(`${nameOf(row)}: nothing is left.`, () => control('POST', ['keys', label, 'limits', row.limit_key, 'exhaust']));
}
