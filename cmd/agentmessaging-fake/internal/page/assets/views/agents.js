// Agents, and the one that is open with its conversation. A wide page shows three
// columns: the list, the conversation, and what is known of the agent.
import { h } from '../dom.js';
import { state } from '../store.js';
import { act, control, Failure } from '../api.js';
import { hrefOf } from '../route.js';
import { plural, indentJSON, withoutUser } from '../format.js';
import { asCurl } from '../snippets.js';
import { textOf, storyOf } from '../story.js';
import { ago, arrival, exactAndAgo, code, empty, facts, head, item, mono, statusTag, submit, tag } from '../widgets.js';

// The newest agent is on top, as in the traffic. The fake answers the oldest first.
export function Agents() {
  const agents = state.agents ?? [];
  const open = state.openAgent?.agent_id === state.route.id ? state.openAgent : null;
  // The fake holds more agents than the list loads, such as after a load test.
  const hidden = state.agentTotal - agents.length;
  return h(
    'div.panel.two',
    // three shows the third column, opened hides the list on a narrow page.
    { class: `${open ? 'three' : ''} ${state.route.id ? 'opened' : ''}` },
    h(
      'section',
      { 'aria-label': 'All agents' },
      head('Agents', state.agentTotal > 0 && plural(state.agentTotal, 'agent')),
      // The open agent is the one that was loaded: the address may name one that is gone.
      agents.length > 0 && h('ul.items.lines', [...agents].reverse().map((a) => row(a, a.agent_id === open?.agent_id))),
      hidden > 0 && h('small', `The newest ${agents.length} of ${plural(state.agentTotal, 'agent')}; a call opens the agent that it is for.`),
    ),
    open ? [h(Conversation, { agent: open }), h(Facts, { agent: open })] : h('section.main', { 'aria-label': 'The open agent' }, nothing(agents)),
  );
}

// nothing is what the middle shows while no agent is open, for each of four reasons.
function nothing(agents) {
  if (state.agents === null) return null;
  if (state.route.id) return empty('No such agent', h('p', 'It may have gone with a reset. Open one from the list.'));
  if (agents.length) return empty('No agent is open', h('p', 'Open one from the list to read its conversation and to write to it.'));
  return empty('No agents yet', h('p', 'Your application creates one with a call. By hand:'), code('curl', asCurl(firstAgent)));
}

// The call that makes an agent, for a shell.
const firstAgent = { method: 'POST', path: '/v1/agents', body: '{"system_prompt":"Be brief."}' };

// row is an agent in the list: its identifier, its SMS channel, whose it is and how
// old.
function row(a, open) {
  return item('agents', a.agent_id, open, a.sms && smsTag(a.sms.status, 'SMS '), h('span.clip', a.customer_ref || plural(a.exchanges, 'exchange')), ago(a.created_at));
}

// Facts are the members that interface 4.7 and the fake know of an agent.
function Facts({ agent: a }) {
  return h(
    'section.main',
    { 'aria-label': 'About the agent' },
    h('h3', 'Agent'),
    facts([
      ['Status', tag(a.status, a.status === 'active' ? 'good' : 'warn')],
      ['Key', h('a', { href: hrefOf('keys', a.key) }, mono(a.key))],
      ['Customer', a.customer_ref],
      ['Created', exactAndAgo(a.created_at)],
      ['Updated', exactAndAgo(a.updated_at)],
    ]),
    a.system_prompt && code('System prompt', a.system_prompt, { copied: false }),
    a.metadata && code('Metadata', indentJSON(JSON.stringify(a.metadata)), { copied: false }),
    h('h3', 'Language model'),
    facts(Object.entries(a.llm).map(([name, value]) => [name, mono(name === 'base_url' ? withoutUser(value) : value)])),
    a.sms && h('h3', 'SMS channel'),
    a.sms && facts([['Status', smsTag(a.sms.status)], ['Mode', mono(a.sms.mode)], ['Number', mono(a.sms.phone_number)]]),
  );
}

// The colours of the SMS statuses of interface 3; disabled has none.
const tones = { active: 'good', pending: 'warn', needs_setup: 'warn', needs_compliance: 'warn' };

// smsTag is the status of an SMS channel.
function smsTag(status, before = '') {
  return tag(before + status, tones[status]);
}

// Conversation is what was said with an agent, and a line to say more.
function Conversation({ agent }) {
  const id = agent.agent_id;
  // The conversation of another agent may still be there while this one's is loaded.
  const { agent: of, exchanges, total, calls } = state.conversation ?? {};
  const loaded = of === id && exchanges;
  // Calls from before the first exchange that is shown would have no place in the
  // story.
  const earlier = loaded ? total - exchanges.length : 0; // exchanges that are not loaded
  const story = loaded ? storyOf(exchanges, calls, earlier ? Date.parse(exchanges[0].time) : 0) : [];
  return h(
    'section.main',
    { 'aria-label': 'Conversation' },
    h('div.between', h('h2', mono(id)), h('small.sum', plural(agent.exchanges, 'exchange'))),
    h(
      // The style sheet reverses it, so the browser keeps its end in sight as it grows.
      'div.said', // begins at its end, and stays there
      { key: id, tabIndex: 0, role: 'log', 'aria-label': `Conversation with ${id}` },
      h(
        'div.stack',
        earlier > 0 && h('small', `${plural(earlier, 'earlier exchange')} not shown`),
        loaded && !story.length && empty('Nothing was said yet', h('p', 'Write the first message below. It is a real call with the key of the agent, and shows in the traffic.')),
        story.map(step),
      ),
    ),
    h(Composer, { key: `to ${id}`, agent }),
  );
}

// step is an exchange, or a call that led to none.
function step({ exchange: e, call, attempt }) {
  if (!e) {
    return h(
      'a.attempt.row.end',
      { key: `call ${call.seq}`, href: hrefOf('traffic', call.seq) },
      statusTag(call),
      mono(call.code || call.fault),
      h('span.clip', { dir: 'auto' }, textOf(call)),
      h('small', attempt > 1 ? `attempt ${attempt}, ` : '', arrival(call.time)),
    );
  }
  return h(
    'div.exchange.stack',
    { key: e.trace_id ?? `${e.time} ${e.text}` },
    // dir auto: a text is written in the direction of its own letters.
    h('div.bubble.mine', h('p', { dir: 'auto' }, e.text), h('small.row', mono(e.user_ref), attempt > 1 && `attempt ${attempt}`, arrival(e.time))),
    h(
      'div.bubble',
      h('p', { dir: 'auto' }, e.reply_text),
      (e.warnings ?? []).map((w) => h('div.row', tag('warning', 'warn'), w)),
      h('small.row', mono(e.trace_id), call?.fault && tag(call.fault, 'fault')),
    ),
  );
}

// Enter sends and Shift+Enter begins a line. While an input method composes, Enter is
// its own. A message that was refused comes back into the box, unless another was
// begun. The call is made by the fake itself with the key of the agent, whose text the
// page never has.
function Composer({ agent }) {
  const send = async (event) => {
    event.preventDefault();
    const box = event.currentTarget.closest('form').elements.text;
    // Spaces alone are not sent.
    const text = box.value;
    if (text.trim() === '') return;
    box.value = '';
    const sent = await act('', () => say(agent, text));
    if (!sent && !box.value) box.value = text;
  };
  const key = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send(event);
  };
  return h(
    'form.composer.row',
    { onSubmit: send },
    h('textarea', { name: 'text', dir: 'auto', 'aria-label': 'Message', placeholder: 'Write to the agent', rows: 2, onKeyDown: key }),
    submit('Send'),
  );
}

// say throws where the message was not accepted.
async function say(agent, text) {
  const path = `/v1/agents/${encodeURIComponent(agent.agent_id)}/messages`;
  const { status, body } = await control('POST', ['calls'], { method: 'POST', path, key: agent.key, body: JSON.stringify({ text }) });
  // The call of the control interface has succeeded; here it is about the call of the
  // service.
  if (status === 200) return;
  const details = [body?.error, body?.limit_key, body?.reason].filter(Boolean).join(', ');
  throw new Failure(status, '', `The service answered ${status}${details && `: ${details}`}.`);
}
