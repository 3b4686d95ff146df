// What was said with an agent, and a line to say more.
import { h, Component } from '../dom.js';
import { state, change } from '../store.js';
import { act, control, Failure } from '../api.js';
import { showEarlier } from '../load.js';
import { log } from '../sync.js';
import { count, plural } from '../format.js';
import { hrefOf } from '../route.js';
import { said, storyOf } from '../story.js';
import { back, button, mark, statusTag, submit, time, tag, mono, empty } from '../parts/widgets.js';

export function Conversation({ agent }) {
  const id = agent.agent_id;
  const { agent: of, exchanges, total } = state.conversation ?? {};
  const loaded = of === id && exchanges;
  const sending = state.sending[id];
  const earlier = loaded ? total - exchanges.length : 0; // exchanges that are not loaded
  const story = loaded ? storyOf(id, exchanges, log.calls, earlier ? Date.parse(exchanges[0].time) : 0) : [];
  return h(
    'section.main.talk',
    { 'aria-label': 'Conversation' },
    back('agents', 'All agents'),
    h('div.mainhead.between', null, h('h2', null, mono(id)), h('p.sum', null, plural(agent.exchanges, 'exchange'))),
    h(
      'div.said', // begins at its end, and stays there
      { key: id, tabIndex: 0, role: 'log', 'aria-label': `Conversation with ${id}` },
      h(
        'div.stack',
        null,
        earlier > 0 && h('div.older.row', null, button(`Show earlier (${count(earlier)})`, showEarlier, { small: true })),
        loaded && !story.length && sending === undefined && empty('Nothing was said yet', h('p', null, 'Write the first message below. It is a real call with the key of the agent, and shows in the traffic.')),
        story.map(step),
        sending !== undefined && h('div.exchange.stack', { key: 'sending' }, h('div.bubble.mine', { 'aria-busy': 'true' }, h('p', { dir: 'auto' }, sending), h('div.hint', null, 'sending'))),
      ),
    ),
    h(Composer, { agent }),
  );
}

// step is an exchange, or a call that led to none.
function step({ exchange: e, call, attempt }) {
  if (e) return h(Exchange, { key: e.trace_id ?? `${e.time} ${e.text}`, e, attempt, lost: call?.fault });
  return h(
    'a.attempt.row',
    { key: `call ${call.seq}`, href: hrefOf('traffic', call.seq) },
    statusTag(call),
    mark(call),
    h('span.clip', { dir: 'auto' }, said(call)),
    h('span.soft', null, attempt > 1 ? `attempt ${attempt}, ` : '', time(call.time)),
  );
}

// Exchange draws once what never changes, but for its age.
class Exchange extends Component {
  shouldComponentUpdate({ e, lost }) {
    return e !== this.props.e || lost !== this.props.lost;
  }

  render({ e, attempt, lost }) {
    return h(
      'div.exchange.stack',
      null,
      h('div.bubble.mine', null, h('p', { dir: 'auto' }, e.text), h('div.row.hint', null, mono(e.user_ref), attempt > 1 && `attempt ${attempt}`, time(e.time))),
      h(
        'div.bubble.theirs',
        null,
        h('p', { dir: 'auto' }, e.reply_text),
        (e.warnings ?? []).map((w, n) => h('div.row', { key: n }, tag('warning', 'warn'), w)),
        h('div.row.hint', null, mono(e.trace_id), lost && tag(lost, 'fault')),
      ),
    );
  }
}

function Composer({ agent }) {
  const id = agent.agent_id;
  const type = (value) => change({ drafts: { ...state.drafts, [id]: value } });
  const sending = (words) => change({ sending: { ...state.sending, [id]: words } });
  const sendDraft = async (event) => {
    event.preventDefault();
    // What was drawn last may be a frame behind what was typed.
    const words = state.drafts[id] ?? '';
    if (words.trim() === '') return;
    type('');
    sending(words); // it shows before the agent has answered it
    const sent = await send(agent, words);
    sending(undefined);
    if (!sent) type(words);
  };
  const key = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) sendDraft(event);
  };
  return h(
    'form.composer.row',
    { onSubmit: sendDraft },
    h('textarea', { dir: 'auto', 'aria-label': 'Message', placeholder: 'Write to the agent', rows: 2, value: state.drafts[id] ?? '', onInput: (e) => type(e.target.value), onKeyDown: key }),
    submit('Send', { icon: 'send' }),
  );
}

// send answers undefined where the message was not accepted, so that what was
// typed comes back.
function send(agent, words) {
  return act('', async () => {
    const { status, body } = await control('POST', ['calls'], { method: 'POST', path: `/v1/agents/${encodeURIComponent(agent.agent_id)}/messages`, key: agent.key, body: JSON.stringify({ text: words }) });
    if (status !== 200) throw new Failure(status, '', refusal(status, body));
  });
}

function refusal(status, body) {
  const { error, limit_key: limit, reason, trace_id: trace } = body && typeof body === 'object' ? body : {};
  const details = [error, limit, reason, trace].filter(Boolean).join(', ');
  return `The service answered ${status}${details && `: ${details}`}.`;
}
