// One call: what was sent, what was answered, and how to send it again.
import { h, Component } from '../dom.js';
import { gap, took, indentJSON, plural } from '../format.js';
import { asCurl, isLong } from '../snippets.js';
import { hrefOf } from '../route.js';
import { whyOf } from '../story.js';
import { notice } from '../store.js';
import { act, control } from '../api.js';
import { arrival, brokeOff, button, code, facts, form, input, mono, request, statusTag, submit, tag, exactAndAgo } from '../widgets.js';

// CallDetail is the open call at the side of the list, on a narrow page in its place.
// call is the record as the fake keeps it, attempts those that belong together with it.
export class CallDetail extends Component {
  // take keeps the element that can have the focus.
  take = (element) => {
    this.element = element;
  };

  // On a narrow page the list makes room for the call; the focus goes with it.
  componentDidMount() {
    // On a wide page the focus stays in the list, where the arrow keys go on.
    if (!this.element.previousSibling.checkVisibility()) this.element.focus();
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
    // What came next tells whether the client kept to Retry-After.
    const why = whyOf(call, attempts[attempts.indexOf(call) + 1]);
    return h(
      'aside.main',
      { ref: this.take, tabIndex: -1, 'aria-label': 'The open call' },
      h('div.between', h('h2', request(call)), button('Close', onClose)),
      why && h('p.why', { role: 'note', dir: 'auto' }, why),
      h(Summary, { call }),
      attempts.length > 1 && h(Attempts, { call, attempts }),
      exchanged(call),
      h(Again, { call }),
    );
  }
}

// Summary is what the record says in one word each.
function Summary({ call }) {
  return facts([
    ['Status', [statusTag(call), ' ', mono(call.code)]],
    // What the service decided is said only where the client got something else.
    ['Decided', differs(call) ? (call.status ? tag(call.status) : 'nothing: a fault came first') : undefined],
    // missing and unknown name no key of the fake, so nothing can be opened.
    ['Key', /^(missing|unknown)$/.test(call.key) ? call.key : h('a', { href: hrefOf('keys', call.key) }, mono(call.key))],
    ['Agent', call.agent_id && h('a', { href: hrefOf('agents', call.agent_id) }, mono(call.agent_id))],
    ['Limit', mono(call.limit_key)],
    ['Fault', mono(call.fault)],
    ['Took', took(call.took_ns / 1e9)],
    ['Arrived', exactAndAgo(call.time)],
    ['From', mono(call.address)],
    ['Trace id', mono(call.trace_id)],
  ]);
}

// Attempts are what the client sent for one call of its user.
function Attempts({ call, attempts }) {
  // Each attempt is a link to its own record, with the wait since the one before.
  const attempt = (c, i) =>
    h(
      'a.row',
      { href: hrefOf('traffic', c.seq), 'aria-current': c === call ? 'true' : undefined },
      statusTag(c),
      mono(c.fault || c.code),
      h('small', arrival(c.time), ' ', i > 0 && gap(attempts[i - 1].time, c.time)),
    );
  return [h('h3', 'Attempts'), h('ol.stack', { 'aria-label': 'Attempts' }, attempts.map((c, i) => h('li', { key: c.seq }, attempt(c, i))))];
}

// differs reports whether the client got something else than the service
// decided.
function differs({ status, sent, fault }) {
  return Boolean(fault) && (status !== sent.status || Boolean(sent.broke));
}

// exchanged is what went over the wire, in both directions. What the service decided is
// shown only where the client did not get it.
function exchanged(call) {
  const { sent } = call;
  return [
    h('h3', 'Request'),
    header(call.header),
    bodyOf('Body', call.body, call.body_bytes),
    h('h3', 'What the client got'),
    header(sent.header),
    // Of an answer that broke off before its body the next line says all.
    !(sent.broke && !sent.body) && bodyOf('Reply', sent.body, sent.bytes),
    sent.broke && h('small', `${plural(sent.bytes, 'byte')} of the body, then: ${brokeOff(sent)}.`),
    differs(call) && call.reply_body && [h('h3', 'What the service decided'), code('Decided', indentJSON(call.reply_body))],
  ];
}

// bodyOf shows a body, and says where some of it is missing. A body that was not sent
// and one that was not kept are two things.
function bodyOf(label, body, bytes) {
  if (!body) return h('small', bytes > 0 ? `A body of ${plural(bytes, 'byte')}, which was not kept.` : 'No body.');
  return [code(label, indentJSON(body)), isLong(body) && h('small', `Only the beginning of ${plural(bytes, 'byte')} was kept.`)];
}

// header shows a header, closed at first: one seldom looks for it.
function header(values = {}) {
  const lines = Object.entries(values).flatMap(([name, all]) => all.map((value) => `${name}: ${value}`));
  return lines.length > 0 && h('details', h('summary', h('small', plural(lines.length, 'header'))), h('pre', lines.join('\n')));
}

// Again sends the call once more, as it was or edited, and shows the curl that does the
// same. What was taken out of a body has to be put in first.
function Again({ call }) {
  const { method, path, key, body: kept } = call;
  const send = ({ body }) =>
    act('', async () => {
      // undefined leaves the key out: the call was made without one.
      const { status } = await control('POST', ['calls'], { method, path, key: key === 'missing' ? undefined : key, body });
      notice('good', `Sent again: the service answered ${status}.`);
    });
  return [
    h('h3', 'Send it again'),
    // Nobody can send again what was not kept, or with a key that the fake does not
    // have.
    key !== 'unknown' && !(call.body_bytes && !kept) && form('Send it again', send, kept && input('Body', { name: 'body', rows: 3, defaultValue: kept }), h('div.row.end', submit('Send again'))),
    code('As curl', asCurl(call)),
  ];
}
