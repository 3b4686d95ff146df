// Agents, and the one that is open with its conversation.
import { h, text } from '../dom.js';
import { state, change } from '../store.js';
import { act, request, worldPath } from '../api.js';
import { loadAgents, openKey } from '../sync.js';
import { go, hrefOf } from '../route.js';
import { plural, indentJSON } from '../format.js';
import { button, field, tag, mono, ago, both, facts, empty, arrows, code } from '../parts/widgets.js';
import { back } from './back.js';
import { Conversation } from './conversation.js';
import { SMS, smsTone } from './sms.js';

export function Agents() {
  const agents = state.agents ?? [];
  const open = state.openAgent?.agent_id === state.route.id ? state.openAgent : null;
  return h(
    'div.panel.two',
    { class: `${open ? 'three' : ''} ${state.route.id ? 'opened' : ''}` },
    h(
      'section.side',
      { 'aria-label': 'All agents' },
      h('div.panelhead', null, h('h1', null, 'Agents'), h('p.sum', null, state.agentTotal ? plural(state.agentTotal, 'agent') : '')),
      (agents.length > 0 || state.agentSearch) && h(Search),
      h(List, { agents, open }),
      h(Add),
    ),
    open ? [h(Conversation, { key: 'talk', agent: open }), h(Facts, { key: 'facts', agent: open })] : h('section.main', { 'aria-label': 'The open agent' }, state.route.id && back('agents', 'All agents'), nothing(agents)),
  );
}

function nothing(agents) {
  if (state.agents === null) return null;
  if (state.route.id) return empty('No such agent', h('p', null, 'It may have gone with a reset. Open one from the list.'));
  if (agents.length) return empty('No agent is open', h('p', null, 'Open one from the list to read its conversation and to write to it.'));
  return empty('No agents yet', h('p', null, 'Your application creates one with a call, or add one here. By hand:'), code('curl', createLine, { kind: 'snippet' }));
}

const createLine = `curl -sS "$AGENT_MESSAGING_BASE_URL/v1/agents" \\
  -H "Authorization: Bearer $AGENT_MESSAGING_API_KEY" \\
  -H 'Content-Type: application/json' \\
  --data-raw '{"system_prompt":"Be brief."}'`;

function Search() {
  return h('input.find', {
    type: 'search',
    'aria-label': 'Filter agents',
    placeholder: 'Identifier, customer, prompt',
    value: state.agentSearch,
    onInput: (e) => (change({ agentSearch: e.target.value }), loadAgents()),
  });
}

function List({ agents, open }) {
  const missing = state.agentTotal - agents.length;
  return [
    h('ul.items', { key: 'items', onKeyDown: arrows }, [...agents].reverse().map((a) => h('li', { key: a.agent_id }, item(a, a.agent_id === open?.agent_id)))),
    missing > 0 && h('p.hint', { key: 'more' }, `The newest ${agents.length} of ${plural(state.agentTotal, 'agent')}; search for the others.`),
  ];
}

function item(a, open) {
  return h(
    'a.item',
    { href: hrefOf('agents', a.agent_id), 'data-item': '', 'aria-current': open ? 'true' : undefined },
    h('span.first', null, mono(a.agent_id), a.sms && tag(`SMS ${text(a.sms.status)}`, smsTone(a.sms.status))),
    h('span.second', null, h('span.clip', null, text(a.customer_ref) || plural(a.exchanges, 'exchange')), ago(a.created_at)),
  );
}

function Add() {
  const keys = (state.keys ?? []).filter((k) => !k.revoked);
  if (!keys.length) return null;
  return h(
    'details.add',
    null,
    h('summary', null, 'Add an agent'),
    h(
      'form',
      { onSubmit: add },
      field('Key', h('select', { name: 'key' }, keys.map((k) => h('option', { key: k.label, value: k.label, selected: k.label === openKey() }, k.label)))),
      field('System prompt', h('textarea', { name: 'system_prompt', rows: 3, maxLength: 2000 })),
      field('Customer', h('input', { name: 'customer_ref', maxLength: 200 })),
      h('p.hint', null, 'Put in place without a call: it spends no limit.'),
      h('div.actions', null, button('Add agent', null, { kind: 'primary', type: 'submit' })),
    ),
  );
}

function add(event) {
  event.preventDefault();
  const given = [...new FormData(event.target)].filter(([, value]) => value !== '');
  act('', async () => {
    const made = await request('POST', worldPath('agents'), Object.fromEntries(given));
    loadAgents();
    go('agents', made.agent_id);
  });
}

function Facts({ agent: a }) {
  return h(
    'section.facing',
    { 'aria-label': 'About the agent' },
    h('h3', null, 'Agent'),
    facts([
      ['Status', tag(a.status, a.status === 'active' ? 'good' : 'warn')],
      ['Key', h('a', { href: hrefOf('keys', a.key) }, mono(a.key))],
      ['Customer', text(a.customer_ref)],
      ['Created', both(a.created_at)],
      ['Updated', both(a.updated_at)],
    ]),
    a.system_prompt && code('System prompt', text(a.system_prompt), { copy: false }),
    a.metadata && code('Metadata', indentJSON(text(a.metadata)), { copy: false }),
    h('h3', null, 'Language model'),
    facts(['mode', 'tier', 'model', 'provider', 'base_url', 'label'].map((name) => [name, a.llm?.[name] && mono(a.llm[name])])),
    h(SMS, { agent: a, key: a.agent_id }),
  );
}
