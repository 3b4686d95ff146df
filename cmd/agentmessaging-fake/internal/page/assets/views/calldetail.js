// One call: what was sent, what was answered, and how to send it again.
import { h, Component } from '../dom.js';
import { gap, took, indentJSON, plural } from '../format.js';
import { asCurl, asGo, isLong } from '../snippets.js';
import { hrefOf } from '../route.js';
import { whyOf } from '../story.js';
import { notice } from '../store.js';
import { act, control } from '../api.js';
import { arrival, broken, button, code, facts, form, input, mono, path, statusTag, submit, tag, both } from '../widgets.js';

export class CallDetail extends Component {
  take = (element) => {
    this.element = element;
  };

  // Over a narrow page the call lies above the list; the focus goes with it.
  componentDidMount() {
    if (getComputedStyle(this.element).position === 'absolute') this.element.focus();
    document.addEventListener('keydown', this.escape);
  }

  componentWillUnmount() {
    document.removeEventListener('keydown', this.escape);
  }

  // Escape works wherever the focus is, but a popover takes it first.
  escape = (event) => {
    if (event.key === 'Escape' && !document.querySelector(':popover-open')) this.props.onClose();
  };

  render({ call, attempts, onClose }) {
    const why = whyOf(call, attempts[attempts.indexOf(call) + 1]);
    return h(
      'aside.detail',
      { ref: this.take, tabIndex: -1, 'aria-label': 'The open call' },
      h(
        'div.detailhead.between',
        h('h2', h('span.method', call.method), ' ', path(call.path)),
        button('Close', onClose, { kind: 'quiet', small: true }),
      ),
      h('div.detailbody.stack', why && h('p.why', { role: 'note', dir: 'auto' }, why), h(Summary, { call }), attempts.length > 1 && h(Attempts, { call, attempts }), h(Exchanged, { call }), h(Again, { call })),
    );
  }
}

function Summary({ call }) {
  return facts([
    ['Status', h('span', statusTag(call), ' ', mono(call.code))],
    ['Decided', differs(call) ? (call.status ? tag(call.status) : 'nothing: a fault came first') : undefined],
    ['Key', /^(missing|unknown)$/.test(call.key) ? call.key : h('a', { href: hrefOf('keys', call.key) }, mono(call.key))],
    ['Agent', call.agent_id && h('a', { href: hrefOf('agents', call.agent_id) }, mono(call.agent_id))],
    ['Limit', mono(call.limit_key)],
    ['Fault', mono(call.fault)],
    ['Took', took(call.took_ns / 1e9)],
    ['Arrived', both(call.time)],
    ['From', mono(call.address)],
    ['Trace id', mono(call.trace_id)],
  ]);
}

// Attempts are what the client sent for one call of its user.
function Attempts({ call, attempts }) {
  const attempt = (c, i) =>
    h(
      'a.attempt.row',
      { href: hrefOf('traffic', c.seq), 'aria-current': c === call ? 'true' : undefined },
      statusTag(c),
      mono(c.fault || c.code),
      h('span.soft', arrival(c.time), ' ', i > 0 && gap(attempts[i - 1].time, c.time)),
    );
  return [h('h3', { key: 'title' }, 'Attempts'), h('ol', { key: 'list', 'aria-label': 'Attempts' }, attempts.map((c, i) => h('li', { key: c.seq }, attempt(c, i))))];
}

// differs reports whether the client got something else than the service
// decided.
function differs({ status, sent, fault }) {
  return Boolean(fault) && (status !== sent.status || Boolean(sent.broke));
}

function Exchanged({ call }) {
  return [
    h('h3', { key: 'request' }, 'Request'),
    h(Header, { key: 'header', lines: headerLines(call.header) }),
    bodyOf('Body', call.body, call.body_bytes),
    h('h3', { key: 'reply' }, 'What the client got'),
    h(Header, { key: 'sentheader', lines: headerLines(call.sent.header) }),
    !(call.sent.broke && !call.sent.body) && bodyOf('Reply', call.sent.body, call.sent.bytes),
    call.sent.broke && h('p.hint', { key: 'broke' }, `${plural(call.sent.bytes, 'byte')} of the body, then: ${broken[call.sent.broke]}.`),
    differs(call) && call.reply_body && [h('h3', { key: 'decided' }, 'What the service decided'), code('Decided', indentJSON(call.reply_body))],
  ];
}

// bodyOf shows a body, and says where some of it is missing.
function bodyOf(label, body, bytes) {
  if (!body) return h('p.hint', { key: label }, bytes > 0 ? `A body of ${plural(bytes, 'byte')}, which was not kept.` : 'No body.');
  return [code(label, indentJSON(body)), isLong(body) && h('p.hint', { key: `${label} rest` }, `Only the beginning of ${plural(bytes, 'byte')} was kept.`)];
}

function headerLines(header) {
  return Object.entries(header ?? {}).flatMap(([name, values]) => values.map((value) => `${name}: ${value}`));
}

// Seldom what one is looking for, so it is closed at first.
function Header({ lines }) {
  return lines.length > 0 && h('details.hint', h('summary', plural(lines.length, 'header')), h('pre', lines.join('\n')));
}

// Again sends the call once more, as it was or edited, and shows the curl and
// the Go that do the same.
function Again({ call }) {
  const send = (given) =>
    act('', async () => {
      const { status } = await control('POST', ['calls'], { seq: call.seq, ...given });
      notice('done', `Sent again: the service answered ${status}.`);
    });
  return [
    h('h3', { key: 'again' }, 'Send it again'),
    call.key !== 'unknown' &&
      form('Send it again', send, call.body && input('Body', { name: 'body', rows: 3, defaultValue: call.body }), h('div.row.actions', submit('Send again', { kind: '' }))),
    code('As curl', asCurl(call)),
    code('As Go', asGo(call)),
  ];
}
