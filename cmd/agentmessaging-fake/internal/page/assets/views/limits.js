// The seven limits of a key as gauges.
import { h } from '../dom.js';
import { now, state } from '../store.js';
import { showLimitsOf } from '../load.js';
import { act, control } from '../api.js';
import { count, relative } from '../format.js';
import { hrefOf } from '../route.js';
import { button, choice, mono } from '../widgets.js';

const names = {
  key_minute: 'Requests per minute',
  ip_minute: 'Requests per minute, address',
  key_day: 'Requests per day',
  agent_create_key_day: 'Agents per day',
  agent_create_ip_minute: 'Agents per minute, address',
  byok_set_key_hour: 'Provider keys per hour',
  warmup_key_hour: 'Warm-ups per hour',
};

const nameOf = (row) => names[row.limit_key] ?? row.limit_key;

export function Limits({ label, rows }) {
  return h(
    'section.stack',
    { 'aria-label': 'Limits' },
    h('h3', 'Limits'),
    rows ? h('ul.lines', rows.map((row) => h(Gauge, { key: row.limit_key, label, row }))) : h('small', 'Loading'),
  );
}

function Gauge({ label, row }) {
  const name = nameOf(row);
  return h(
    'li.gauge.between',
    { 'data-limit': row.limit_key },
    h('div', name, ' ', h('small', mono(row.limit_key))),
    h('span.bar', { class: toneOf(row), 'aria-hidden': 'true', style: { '--share': `${share(row) * 100}%` } }),
    h('div', row.max === null ? 'No limit' : `${count(row.left)} of ${count(row.max)} left`, row.opens_at && `, ${opensIn(row)}`),
    row.max !== null && button('Exhaust', () => exhaust(label, row), { 'aria-label': `Exhaust ${name}` }),
  );
}

// Strip is the limits in one line, for above the traffic: what is shut, and what
// is left of the others that something was spent of. A 429 chooses the key that met
// it. The strip is always there, so that nothing moves when the first call comes.
export function Strip() {
  const { key, rows = [] } = state.limits ?? {};
  const spent = rows.filter((row) => row.max !== null && row.left < row.max).sort((a, b) => (a.left > 0) - (b.left > 0));
  const none = rows.some((row) => row.max !== null) ? 'nothing spent' : 'no limits';
  const keys = (state.keys ?? []).map((k) => [k.label, k.label]);
  return h(
    'div.strip.row',
    keys.length > 1 ? choice('Limits of the key', keys, { value: key, onChange: (e) => showLimitsOf(e.target.value) }) : mono(key),
    h('a.row', { href: hrefOf('keys', key) }, key ? '' : 'Limits', rows.length > 0 && !spent.length && none, spent.map(small)),
  );
}

function small(row) {
  const words = row.opens_at ? opensIn(row) : `${count(row.left)} left`;
  return h('small.clip', { key: row.limit_key, class: toneOf(row), title: row.limit_key }, nameOf(row).replace('Requests per', 'per'), ' ', h('b', words));
}

// share is how much of a limit is spent, from 0 to 1.
function share({ left, max }) {
  return max ? Math.min(1, (max - left) / max) : 0;
}

function toneOf(row) {
  if (row.left === 0) return 'bad';
  return share(row) >= 0.8 ? 'warn' : 'good';
}

function opensIn({ opens_at: iso }) {
  return `opens ${relative(Date.parse(iso), now())}`;
}

function exhaust(label, row) {
  act(`${nameOf(row)}: nothing is left.`, () => control('POST', ['keys', label, 'limits', row.limit_key, 'exhaust']));
}
