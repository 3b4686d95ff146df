// Keys and their plans, limits and BYOK configuration.
import { h } from '../dom.js';
import { state, change } from '../store.js';
import { act, control } from '../api.js';
import { openKey, loadBYOK } from '../load.js';
import { go, hrefOf } from '../route.js';
import { plural } from '../format.js';
import { asCurl } from '../snippets.js';
import { back, button, choice, code, form, head, select, submit, tag, mono, ago, both, facts, empty, arrows } from '../parts/widgets.js';
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
    { class: state.route.id ? 'opened' : '' },
    h(
      'section.side',
      { 'aria-label': 'All keys' },
      head('Keys', keys.length ? plural(keys.length, 'key') : ''),
      h('div.card', null, h(Issue)),
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
    h('span.between', null, mono(k.label), keyState(k)),
    h('span.between.hint', null, h('span', null, `Plan ${k.plan}`, k.default ? ', default' : '', k.dashboard ? '' : ', not from the dashboard'), ago(k.issued_at)),
  );
}

function keyState(k) {
  if (k.revoked) return tag('revoked', 'bad');
  return k.plan === 'free' ? tag('inactive', 'warn') : tag('active', 'good');
}

function Issue() {
  const issue = ({ plan, dashboard }) =>
    act('', async () => {
      const made = await control('POST', ['keys'], { plan, dashboard: Boolean(dashboard) });
      go('keys', made.label);
      change({ dialog: { kind: 'issued', label: made.label, plan: made.plan, secret: made.key } });
    });
  return form(
    'Issue a key',
    issue,
    select('Plan of the new key', plans, { name: 'plan' }),
    h('label.row', null, h('input', { type: 'checkbox', name: 'dashboard', defaultChecked: true }), h('span', null, 'Issued by the dashboard')),
    submit('Issue key', { icon: 'plus' }),
  );
}

function Availability() {
  const set = (event) => {
    const available = event.target.checked;
    change({ byokAvailable: available }); // a drawing before the answer must not switch it back
    act(available ? 'BYOK is available.' : 'BYOK is not available: its calls answer 503.', () => control('PUT', ['byok'], { available })).then(loadBYOK);
  };
  return h(
    'div.card.stack',
    null,
    h('label.row', null, h('input', { type: 'checkbox', role: 'switch', checked: state.byokAvailable, onChange: set }), h('span', null, 'BYOK is available')),
    h('p.hint', null, 'While this is off, storing a provider key and warming up in byok mode answer 503, for every key.'),
  );
}

function Key({ value: k }) {
  const rows = state.limits?.key === k.label ? state.limits.rows : null;
  const found = state.keyByok?.key === k.label ? state.keyByok.byok : null;
  return [
    h(
      'div.mainhead.between',
      { key: 'head' },
      h('h2.row', null, mono(k.label), keyState(k)),
      h(
        'div.row',
        null,
        h('label.row', null, h('span.label', null, 'Plan'), choice(`Plan of ${k.label}`, plans, { value: k.plan, disabled: k.revoked, onChange: (e) => changePlan(k, e.target) })),
        k.revoked ? button('Reinstate', () => reinstate(k)) : button('Revoke', () => revoke(k), { kind: 'danger' }),
      ),
    ),
    facts([
      ['Issued', both(k.issued_at)],
      ['By', k.dashboard ? 'the dashboard' : 'not the dashboard: BYOK operations answer 403'],
    ]),
    h(Limits, { key: 'limits', label: k.label, rows }),
    h('section.block.stack', { key: 'byok', 'aria-label': 'Provider key' }, h('h3', null, 'Provider key (BYOK)'), found ? stored(found) : none()),
  ];
}

async function changePlan(k, chosen) {
  const plan = chosen.value;
  const done = await act(`${k.label} is on the plan ${plan}.`, () => control('PATCH', ['keys', k.label], { plan }));
  if (!done) chosen.value = k.plan;
}

function revoke(k) {
  act(`${k.label} is revoked: calls with it are answered 401.`, () => control('PATCH', ['keys', k.label], { revoked: true }));
}

function reinstate(k) {
  act(`${k.label} is valid again.`, () => control('PATCH', ['keys', k.label], { revoked: false }));
}

function none() {
  const call = { method: 'PUT', path: '/v1/byok', body: '{"provider":"openai","api_key":"[redacted]"}' };
  return [h('p.hint', { key: 'says' }, 'None is stored. This call stores one; the page never shows it.'), code('curl', asCurl(call), { kind: 'snippet' })];
}

function stored(found) {
  return facts([
    ['Provider', mono(found.provider)],
    ['Label', found.label],
    ['Model', mono(found.model)],
    ['Base address', mono(found.base_url)],
    ['Fingerprint', mono(found.fingerprint)],
    ['Updated', both(found.updated_at)],
  ]);
}
