// Keys and their plans, limits and BYOK configuration.
import { h } from '../dom.js';
import { state, change, notice } from '../store.js';
import { act, request, worldPath } from '../api.js';
import { openKey, reload, loadBYOK } from '../sync.js';
import { go, hrefOf } from '../route.js';
import { back } from './back.js';
import { plural } from '../format.js';
import { button, choice, field, tag, mono, ago, both, facts, empty, arrows } from '../parts/widgets.js';
import { Limits } from './limits.js';

export const plans = [
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
    { class: state.route.id ? 'opened' : '' },
    h(
      'section.side',
      { 'aria-label': 'All keys' },
      h('div.panelhead', null, h('h1', null, 'Keys'), h('p.sum', null, keys.length ? plural(keys.length, 'key') : '')),
      h(Issue),
      h('ul.items', { onKeyDown: arrows }, keys.map((k) => h('li', { key: k.label }, item(k, k === open)))),
      h(Availability),
    ),
    h(
      'section.main',
      { 'aria-label': 'The open key' },
      back('keys', 'All keys'),
      open ? h(Key, { value: open }) : state.keys && empty('No such key', h('p', null, 'Issue a key, or open one from the list.')),
    ),
  );
}

function item(k, open) {
  return h(
    'a.item',
    { href: hrefOf('keys', k.label), 'data-item': '', 'aria-current': open ? 'true' : undefined },
    h('span.first', null, mono(k.label), keyState(k)),
    h('span.second', null, h('span', null, `Plan ${k.plan}`, k.default ? ', default' : '', k.dashboard ? '' : ', not from the dashboard'), ago(k.issued_at)),
  );
}

function keyState(k) {
  if (k.revoked) return tag('revoked', 'bad');
  if (k.plan === 'free') return tag('inactive', 'warn');
  return tag('active', 'good');
}

function Issue() {
  return h(
    'form.issue',
    { onSubmit: issue, 'aria-label': 'Issue a key' },
    field('Plan of the new key', h('select', { name: 'plan' }, plans.map(([v, words]) => h('option', { key: v, value: v }, words)))),
    h('label.check', null, h('input', { type: 'checkbox', name: 'dashboard', defaultChecked: true }), h('span', null, 'Issued by the dashboard')),
    button('Issue key', null, { kind: 'primary', type: 'submit', icon: 'plus' }),
  );
}

function issue(event) {
  event.preventDefault();
  const form = new FormData(event.target);
  act('', async () => {
    const made = await request('POST', worldPath('keys'), { plan: form.get('plan'), dashboard: form.has('dashboard') });
    reload('keys');
    go('keys', made.label);
    change({ dialog: { kind: 'issued', label: made.label, plan: made.plan, secret: made.key } });
  });
}

function Availability() {
  const set = (event) => {
    const available = event.target.checked;
    change({ byokAvailable: available }); // a drawing before the answer must not switch it back
    act(available ? 'BYOK is available.' : 'BYOK is not available: its calls answer 503.', () => request('PUT', worldPath('byok'), { available })).then(loadBYOK);
  };
  return h(
    'div.setting',
    null,
    h(
      'label.check',
      null,
      h('input.switch', { type: 'checkbox', role: 'switch', checked: state.byokAvailable, onChange: set }),
      h('span', null, 'BYOK is available'),
    ),
    h('p.hint', null, 'Off, storing a provider key and warm-up in byok mode answer 503, for every key.'),
  );
}

function Key({ value: k }) {
  const rows = state.limits?.key === k.label ? state.limits.rows : null;
  return [
    h(
      'div.mainhead',
      { key: 'head' },
      h('h2', null, mono(k.label), keyState(k)),
      h(
        'div.actions',
        null,
        h('label.inline', null, h('span', null, 'Plan'), choice(`Plan of ${k.label}`, plans, { value: k.plan, disabled: k.revoked, onChange: (e) => changePlan(k, e.target) })),
        k.revoked
          ? button('Reinstate', () => reinstate(k))
          : button('Revoke', () => revoke(k), { kind: 'danger' }),
      ),
    ),
    facts([
      ['Issued', both(k.issued_at)],
      ['By', k.dashboard ? 'the dashboard' : 'not the dashboard: BYOK operations answer 403'],
    ]),
    h(Limits, { key: 'limits', label: k.label, rows }),
    h(BYOK, { key: 'byok', found: state.keyByok?.key === k.label ? state.keyByok.byok : null }),
  ];
}

function changePlan(k, select) {
  const plan = select.value;
  act(`${k.label} is on the plan ${plan}.`, () => request('PATCH', worldPath('keys', encodeURIComponent(k.label)), { plan })).then((done) => {
    if (!done) select.value = k.plan;
    reload('keys');
  });
}

function revoke(k) {
  act('', async () => {
    await request('DELETE', worldPath('keys', encodeURIComponent(k.label)));
    reload('keys');
    notice('done', `${k.label} is revoked: calls with it are answered 401.`, () => reinstate(k));
  });
}

function reinstate(k) {
  act(`${k.label} is valid again.`, () => request('POST', worldPath('keys', encodeURIComponent(k.label), 'reinstate'))).then(() => reload('keys'));
}

function BYOK({ found }) {
  return h(
    'section.block',
    { 'aria-label': 'Provider key' },
    h('h3', null, 'Provider key (BYOK)'),
    found
      ? facts([
          ['Provider', mono(found.provider)],
          ['Label', found.label],
          ['Model', found.model && mono(found.model)],
          ['Base address', found.base_url && mono(found.base_url)],
          ['Fingerprint', mono(found.fingerprint)],
          ['Updated', both(found.updated_at)],
        ])
      : h('p.none', null, 'None is stored. PUT /v1/byok stores one; what it holds is never shown.'),
  );
}
