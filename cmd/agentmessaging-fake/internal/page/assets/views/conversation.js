// What was said with an agent, and a line to say more.
import { h } from '../dom.js';
import { state, change } from '../store.js';
import { act, control, Failure } from '../api.js';
import { plural } from '../format.js';
import { hrefOf } from '../route.js';
import { said, storyOf } from '../story.js';
import { arrival, statusTag, submit, tag, mono, empty } from '../widgets.js';

export function Conversation({ agent }) {
  const id = agent.agent_id;
  const { agent: of, exchanges, total, calls } = state.conversation ?? {};
  const loaded = of === id && exchanges;
  const sending = state.sending?.agent === id && state.sending.text;
  const earlier = loaded ? total - exchanges.length : 0; // exchanges that are not loaded
  const story = loaded ? storyOf(exchanges, calls, earlier ? Date.parse(exchanges[0].time) : 0) : [];
  return h(
    'section.main',
    { 'aria-label': 'Conversation' },
    h('div.between', h('h2', mono(id)), h('small.sum', plural(agent.exchanges, 'exchange'))),
    h(
      'div.said', // begins at its end, and stays there
      { key: id, tabIndex: 0, role: 'log', 'aria-label': `Conversation with ${id}` },
      h(
        'div.stack',
        earlier > 0 && h('small', `${plural(earlier, 'earlier exchange')} not shown`),
        loaded && !story.length && !sending && empty('Nothing was said yet', h('p', 'Write the first message below. It is a real call with the key of the agent, and shows in the traffic.')),
        story.map(step),
        sending && h('div.bubble.mine', { key: 'sending', 'aria-busy': 'true' }, h('p', { dir: 'auto' }, sending), h('small', 'sending')),
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
      h('span.clip', { dir: 'auto' }, said(call)),
      h('small', attempt > 1 ? `attempt ${attempt}, ` : '', arrival(call.time)),
    );
  }
  return h(
    'div.exchange.stack',
    { key: e.trace_id ?? `${e.time} ${e.text}` },
    h('div.bubble.mine', h('p', { dir: 'auto' }, e.text), h('small.row', mono(e.user_ref), attempt > 1 && `attempt ${attempt}`, arrival(e.time))),
    h(
      'div.bubble',
      h('p', { dir: 'auto' }, e.reply_text),
      (e.warnings ?? []).map((w) => h('div.row', tag('warning', 'warn'), w)),
      h('small.row', mono(e.trace_id), call?.fault && tag(call.fault, 'fault')),
    ),
  );
}

function Composer({ agent }) {
  const send = async (event) => {
    event.preventDefault();
    const box = event.currentTarget.closest('form').elements.text;
    const text = box.value;
    if (text.trim() === '') return;
    box.value = '';
    change({ sending: { agent: agent.agent_id, text } }); // it shows before the agent has answered it
    const sent = await act('', () => say(agent, text));
    change({ sending: null });
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
  if (status === 200) return;
  const details = [body?.error, body?.limit_key, body?.reason].filter(Boolean).join(', ');
  throw new Failure(status, '', `The service answered ${status}${details && `: ${details}`}.`);
}
