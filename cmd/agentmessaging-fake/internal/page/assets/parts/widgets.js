// Small pieces that several panels use.
import { h, text, Component } from '../dom.js';
import { icon } from './icons.js';
import { relative, exact, timeOfDay } from '../format.js';
import { now } from '../store.js';

// button is a plain button; props.kind is primary, danger or quiet.
export function button(label, onClick, props = {}) {
  const { kind = '', icon: name, small, class: more, ...rest } = props;
  const size = small ? ' small' : '';
  return h(
    'button.button',
    { type: 'button', class: `${kind}${size} ${more ?? ''}`, onClick, ...rest },
    name && icon(name),
    h('span', null, label),
  );
}

// tag is a word about a state. The colour repeats what the word says.
export function tag(label, tone = 'plain') {
  return h('span.tag', { class: tone }, text(label));
}

// broken are the words for how an answer broke off.
export const broken = { closed: 'closed', reset: 'reset', hung: 'no answer' };

// statusTag is what the client got of a call.
export function statusTag({ sent }) {
  const { status, broke } = sent;
  if (!status || broke) return tag(status ? `${status}, ${broken[broke]}` : (broken[broke] ?? 'none'), 'bad');
  if (status < 300) return tag(status, 'good');
  return tag(status, status < 500 ? 'warn' : 'bad');
}

// mark says at a glance why a call did not go as usual.
export function mark(call) {
  if (call.fault) return tag(call.fault, 'fault');
  if (call.limit_key) return tag(call.limit_key, 'quiet');
  return call.code ? tag(call.code, 'quiet') : null;
}

// ago is a time in relative form, with the exact one where the mouse rests.
export function ago(iso) {
  if (!iso) return '';
  const at = Date.parse(iso);
  return h('time', { dateTime: text(iso), title: exact(at) }, relative(at, now()));
}

// time is a time of day, with the date where the mouse rests. It never grows
// old, so that what holds it need not be drawn again.
export function time(iso) {
  return iso && h('time', { dateTime: text(iso), title: exact(Date.parse(iso)) }, timeOfDay(Date.parse(iso)));
}

// both is a time in relative and in exact form.
export function both(iso) {
  if (!iso) return '';
  const at = Date.parse(iso);
  return h('time', { dateTime: text(iso) }, exact(at), ' ', h('span.soft', null, relative(at, now())));
}

// facts is a list of names and values; those without a value are left out.
export function facts(rows) {
  const present = rows.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return h(
    'dl.facts',
    null,
    present.map(([name, value]) => h('div', { key: name }, h('dt', null, name), h('dd', null, value))),
  );
}

export function mono(value) {
  return h('span.mono', null, text(value));
}

// choice is a select over [value, label] pairs.
export function choice(label, options, props) {
  const { value, ...rest } = props;
  return h(
    'select',
    { 'aria-label': label, ...rest },
    options.map(([v, words]) => h('option', { key: v, value: v, selected: v === value }, words)),
  );
}

export function field(label, control, hint) {
  return h('label.field', null, h('span.label', null, label), control, hint && h('span.hint', null, hint));
}

export function empty(title, ...rest) {
  return h('div.empty', null, h('h2', null, title), ...rest);
}

// CopyButton copies, and says so for a moment.
export class CopyButton extends Component {
  copy = async () => {
    this.setState({ done: await copyText(this.props.value) ? 'Copied' : 'Select and copy by hand' });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.setState({ done: '' }), 2000);
  };

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  render({ what }, { done }) {
    return h(
      'span.copy',
      null,
      button(done || 'Copy', this.copy, { small: true, icon: done ? 'check' : 'copy', 'aria-label': done || `Copy ${what}` }),
      h('span.unseen', { role: 'status' }, done),
    );
  }
}

// The clipboard is there for https and loopback only; over plain http from
// another machine the old way still works.
async function copyText(value) {
  if (navigator.clipboard) return navigator.clipboard.writeText(value).then(() => true, () => false);
  const area = document.createElement('textarea');
  area.value = value;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

// code is a block of text to read or copy. It scrolls, so the keyboard must be
// able to reach it.
export function code(label, source, { copy = true, kind = '' } = {}) {
  return h(
    'div.code',
    { class: kind },
    h('div.codehead', null, h('span', null, label), copy && h(CopyButton, { value: source, what: label })),
    h('pre', { tabIndex: 0, role: 'region', 'aria-label': label }, h('code', null, source)),
  );
}

// arrows moves the focus among the items of a list.
export function arrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  const items = [...event.currentTarget.querySelectorAll('[data-item]')];
  const at = items.indexOf(event.target);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  items[Math.min(items.length - 1, Math.max(0, at + step))].focus();
}
