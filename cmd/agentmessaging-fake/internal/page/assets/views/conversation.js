// What was said with an agent, and a line to say more.
import { h, text, Component } from '../dom.js';
import { state, change } from '../store.js';
import { act, request, worldPath, Failure } from '../api.js';
import { plural } from '../format.js';
import { back } from './back.js';
import { button, ago, tag, mono, empty } from '../parts/widgets.js';

export class Conversation extends Component {
  take = (element) => {
    this.element = element;
  };

  componentDidMount() {
    this.#toEnd();
  }

  // Follows the conversation, unless the reader has scrolled up in it.
  componentDidUpdate() {
    const key = `${this.props.agent.agent_id} ${state.conversation?.exchanges?.length}`;
    if (key !== this.key) this.#toEnd();
    this.key = key;
  }

  #toEnd() {
    this.element.scrollTop = this.element.scrollHeight;
  }

  render({ agent }) {
    const { agent: of, exchanges } = state.conversation ?? {};
    const loaded = of === agent.agent_id && exchanges;
    return h(
      'section.talk',
      { 'aria-label': 'Conversation' },
      back('agents', 'All agents'),
      h('div.mainhead', null, h('h2', null, mono(agent.agent_id)), h('p.sum', null, plural(agent.exchanges, 'exchange'))),
      h(
        'div.said',
        { ref: this.take, tabIndex: 0, role: 'log', 'aria-label': `Conversation with ${agent.agent_id}` },
        loaded && (exchanges.length ? exchanges.map(exchange) : empty('Nothing was said yet', h('p', null, 'Write the first message below. It is a real call with the key of the agent, and shows in the traffic.'))),
      ),
      h(Composer, { agent }),
    );
  }
}

function exchange(e, i) {
  return h(
    'div.exchange',
    { key: `${i} ${e.trace_id}` },
    h('div.bubble.mine', null, h('p', null, text(e.text)), h('div.meta', null, e.user_ref && mono(e.user_ref), ago(e.time))),
    h(
      'div.bubble.theirs',
      null,
      h('p', null, text(e.reply_text)),
      (e.warnings ?? []).map((w, n) => h('div.warning', { key: n }, tag('warning', 'warn'), text(w))),
      h('div.meta', null, mono(e.trace_id)),
    ),
  );
}

function Composer({ agent }) {
  const draft = state.drafts[agent.agent_id] ?? '';
  const type = (value) => change({ drafts: { ...state.drafts, [agent.agent_id]: value } });
  const submit = (event) => {
    event.preventDefault();
    // What was drawn last may be a frame behind what was typed.
    const words = state.drafts[agent.agent_id] ?? '';
    if (words.trim() === '') return;
    type('');
    send(agent.agent_id, words).then((sent) => sent || type(words));
  };
  const key = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
  };
  return h(
    'form.composer',
    { onSubmit: submit },
    h('textarea', { 'aria-label': 'Message', placeholder: 'Write to the agent', rows: 2, value: draft, onInput: (e) => type(e.target.value), onKeyDown: key }),
    button('Send', null, { kind: 'primary', type: 'submit', icon: 'send' }),
  );
}

// send answers undefined where the message was not accepted, so that what was
// typed comes back.
function send(agentID, words) {
  return act('', async () => {
    const { status, body } = await request('POST', worldPath('agents', encodeURIComponent(agentID), 'messages'), { text: words });
    if (status !== 200) throw new Failure(status, `The service answered ${status}`, refusal(status, body));
  });
}

function refusal(status, body) {
  const { error, limit_key: limit, reason, trace_id: trace } = body && typeof body === 'object' ? body : {};
  const details = [error, limit, reason, trace].filter(Boolean).map(text).join(', ');
  return `The service answered ${status}${details && `: ${details}`}.`;
}
