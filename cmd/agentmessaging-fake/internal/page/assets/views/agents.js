// Agents, and the one that is open with its conversation.
import { h } from '../dom.js';
import { state } from '../store.js';
import { hrefOf } from '../route.js';
import { plural, indentJSON } from '../format.js';
import { asCurl } from '../snippets.js';
import { head, tag, mono, ago, both, facts, empty, code, item } from '../widgets.js';
import { Conversation } from './conversation.js';

export function Agents() {
  const agents = state.agents ?? [];
  const open = state.openAgent?.agent_id === state.route.id ? state.openAgent : null;
  const hidden = state.agentTotal - agents.length;
  return h(
    'div.panel.two',
    { class: `${open ? 'three' : ''} ${state.route.id ? 'opened' : ''}` },
    h(
      'section',
      { 'aria-label': 'All agents' },
      head('Agents', state.agentTotal > 0 && plural(state.agentTotal, 'agent')),
      agents.length > 0 && h('ul.items.lines', [...agents].reverse().map((a) => row(a, a.agent_id === open?.agent_id))),
      hidden > 0 && h('small', `The newest ${agents.length} of ${plural(state.agentTotal, 'agent')}; a call opens the agent that it is for.`),
    ),
    open ? [h(Conversation, { agent: open }), h(Facts, { agent: open })] : h('section.main', { 'aria-label': 'The open agent' }, nothing(agents)),
  );
}

function nothing(agents) {
  if (state.agents === null) return null;
  if (state.route.id) return empty('No such agent', h('p', 'It may have gone with a reset. Open one from the list.'));
  if (agents.length) return empty('No agent is open', h('p', 'Open one from the list to read its conversation and to write to it.'));
  return empty('No agents yet', h('p', 'Your application creates one with a call. By hand:'), code('curl', asCurl(firstAgent)));
}

const firstAgent = { method: 'POST', path: '/v1/agents', body: '{"system_prompt":"Be brief."}' };

function row(a, open) {
  return item('agents', a.agent_id, open, a.sms && smsTag(a.sms.status, 'SMS '), h('span.clip', a.customer_ref || plural(a.exchanges, 'exchange')), ago(a.created_at));
}

function Facts({ agent: a }) {
  return h(
    'section.main',
    { 'aria-label': 'About the agent' },
    h('h3', 'Agent'),
    facts([
      ['Status', tag(a.status, a.status === 'active' ? 'good' : 'warn')],
      ['Key', h('a', { href: hrefOf('keys', a.key) }, mono(a.key))],
      ['Customer', a.customer_ref],
      ['Created', both(a.created_at)],
      ['Updated', both(a.updated_at)],
    ]),
    a.system_prompt && code('System prompt', a.system_prompt, { copied: false }),
    a.metadata && code('Metadata', indentJSON(JSON.stringify(a.metadata)), { copied: false }),
    h('h3', 'Language model'),
    facts(Object.entries(a.llm).map(([name, value]) => [name, mono(value)])),
    a.sms && h('h3', 'SMS channel'),
    a.sms && facts([['Status', smsTag(a.sms.status)], ['Mode', mono(a.sms.mode)], ['Number', mono(a.sms.phone_number)]]),
  );
}

const tones = { active: 'good', pending: 'warn', needs_setup: 'warn', needs_compliance: 'warn' };

function smsTag(status, before = '') {
  return tag(before + status, tones[status]);
}
