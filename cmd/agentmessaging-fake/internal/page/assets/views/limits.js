// The seven limits of a key as gauges.
import { h } from '../dom.js';
import { now } from '../store.js';
import { actWithUndo, request, worldPath } from '../api.js';
import { loadLimits } from '../sync.js';
import { count, exact, relative } from '../format.js';
import { hrefOf } from '../route.js';
import { button, mono, tag } from '../parts/widgets.js';

const names = {
  key_minute: 'Requests per minute',
  ip_minute: 'Requests per minute, address',
  key_day: 'Requests per day',
  agent_create_key_day: 'Agents per day',
  agent_create_ip_minute: 'Agents per minute, address',
  byok_set_key_hour: 'Provider keys per hour',
  warmup_key_hour: 'Warm-ups per hour',
};

export function Limits({ label, rows }) {
  return h(
    'section.block',
    { 'aria-label': 'Limits' },
    h('h3', null, 'Limits'),
    rows ? h('ul.gauges', null, rows.map((row) => h(Gauge, { key: row.limit_key, label, row }))) : h('p.none', null, 'Loading'),
  );
}

function Gauge({ label, row }) {
  const name = names[row.limit_key] ?? row.limit_key;
  const endless = row.max === null;
  const share = endless || row.max === 0 ? 0 : Math.min(1, (row.max - row.left) / row.max);
  const tone = toneOf(row, share);
  return h(
    'li.gauge',
    { class: tone, 'data-limit': row.limit_key },
    h('div.gname', null, h('span', null, name), mono(row.limit_key)),
    h(
      'div.gbar',
      {
        role: 'meter',
        'aria-label': name,
        'aria-valuemin': 0,
        'aria-valuemax': row.max ?? 0,
        'aria-valuenow': endless ? 0 : row.max - row.left,
        'aria-valuetext': leftWords(row),
      },
      h('div.gfill', { style: { width: `${share * 100}%` } }),
    ),
    h('div.gleft', null, leftWords(row)),
    h('div.gstate', null, opens(row)),
    button('Exhaust', () => exhaust(label, row, name), { small: true, disabled: endless, 'aria-label': `Exhaust ${name}` }),
  );
}

// Strip is the gauges in one line, for above the traffic: what is left, and when
// what is shut opens. Limits that nothing was spent of are left out.
export function Strip({ label, rows }) {
  const spent = (rows ?? []).filter((row) => row.max !== null && row.left < row.max);
  if (!spent.length) return null;
  return h(
    'a.strip',
    { href: hrefOf('keys', label) },
    mono(label),
    spent.map((row) => {
      const share = Math.min(1, (row.max - row.left) / Math.max(1, row.max));
      return h(
        'span.small-gauge',
        { key: row.limit_key, class: toneOf(row, share), title: names[row.limit_key] ?? row.limit_key },
        h('span', null, (names[row.limit_key] ?? row.limit_key).replace('Requests per', 'per')),
        h('span.gbar', { 'aria-hidden': 'true' }, h('span.gfill', { style: { width: `${share * 100}%` } })),
        h('span', null, row.opens_at ? `opens ${relative(Date.parse(row.opens_at), now())}` : `${count(row.left)} left`),
      );
    }),
  );
}

function toneOf(row, share) {
  if (row.left === 0) return 'bad';
  return share >= 0.8 ? 'warn' : 'good';
}

function leftWords({ left, max }) {
  return max === null ? 'No limit' : `${count(left)} of ${count(max)} left`;
}

function opens({ left, max, opens_at: iso }) {
  if (max === null) return null;
  if (!iso) return left === 0 ? tag('shut', 'bad') : tag('open', 'good');
  const at = Date.parse(iso);
  return [tag('shut', 'bad'), h('time', { dateTime: iso, title: exact(at) }, `opens ${relative(at, now())}`)];
}

function exhaust(label, row, name) {
  actWithUndo(`${name}: nothing is left.`, async () => {
    await request('POST', worldPath('keys', encodeURIComponent(label), 'limits', encodeURIComponent(row.limit_key), 'exhaust'));
    loadLimits();
  });
}
