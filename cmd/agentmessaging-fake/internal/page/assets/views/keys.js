// Keys with their plans and limits.
import { h } from '../dom.js';
import { state, change } from '../store.js';
import { act, control } from '../api.js';
import { openKey } from '../load.js';
import { go } from '../route.js';
import { plural } from '../format.js';
import { exportLines } from '../snippets.js';
import { button, choice, code, form, head, select, submit, tag, mono, ago, both, facts, empty, item } from '../widgets.js';
import { Limits } from './limits.js';

const plans = [
  ['preview', 'Preview'],
  ['pro', 'Pro'],
  ['byok', 'BYOK'],
  ['free', 'Free (inactive)'],
];

export function Keys() {
  const keys = state.keys ?? [];
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

function row(k, open) {
  return item('keys', k.label, open, keyState(k), h('span.clip', `Plan ${k.plan}`, k.default && ', default', !k.dashboard && ', not from the dashboard'), ago(k.issued_at));
}

function keyState(k) {
  if (k.revoked) return tag('revoked', 'bad');
  return k.plan === 'free' ? tag('inactive', 'warn') : tag('active', 'good');
}

function issue({ plan }) {
  act('', async () => {
    const issued = await control('POST', ['keys'], { plan });
    change({ issued });
    go('keys', issued.label);
  });
}

function key(k) {
  return [
    h(
      'div.between',
      h('h2.row', mono(k.label), keyState(k)),
      h(
        'div.row',
        choice(`Plan of ${k.label}`, plans, { value: k.plan, disabled: k.revoked, onChange: (e) => changePlan(k, e.target) }),
        k.revoked ? button('Reinstate', () => revoke(k, false, 'is valid again.')) : button('Revoke', () => revoke(k, true, 'is revoked: calls with it are answered 401.'), { class: 'danger' }),
      ),
    ),
    state.issued?.label === k.label && secret(state.issued.key),
    facts([
      ['Issued', both(k.issued_at)],
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

async function changePlan(k, chosen) {
  const plan = chosen.value;
  const done = await act(`${k.label} is on the plan ${plan}.`, () => control('PATCH', ['keys', k.label], { plan }));
  if (!done) chosen.value = k.plan;
}

function revoke({ label }, revoked, words) {
  act(`${label} ${words}`, () => control('PATCH', ['keys', label], { revoked }));
}
