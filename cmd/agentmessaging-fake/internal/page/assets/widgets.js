// Small pieces that several panels use. A widget is a function from values to elements. It
// changes nothing itself: what a click does is an argument.
import { h } from './dom.js';
import { relative, exact, timeOfDay } from './format.js';
import { now, notice } from './store.js';
import { hrefOf } from './route.js';
import { isJSON } from './story.js';

// button is for an action. To open something, use a link.
export function button(label, onClick, props) {
  return h('button', { type: 'button', onClick, ...props }, label);
}

// submit is the button of a form.
export function submit(label) {
  return h('button', { type: 'submit' }, label);
}

// form passes the values of its inputs to onSubmit, by name, without the empty ones.
export function form(label, onSubmit, ...children) {
  const take = (event) => {
    event.preventDefault();
    // An empty input was not filled in. The fake would refuse "".
    const given = [...event.target.elements].filter(({ name, value }) => name && value !== '');
    onSubmit(Object.fromEntries(given.map(({ name, type, value }) => [name, type === 'number' ? Number(value) : value])));
  };
  return h('form.stack', { 'aria-label': label, onSubmit: take }, ...children);
}

// tag is a word about a state. The colour repeats what the word says.
export function tag(label, tone = '') {
  return h('span.tag', { class: tone }, label);
}

// brokeOff says how an answer broke off.
export function brokeOff({ broke }) {
  return { hung: 'no answer', left: 'client left' }[broke] ?? broke;
}

// statusTag shows what the client got: a status, or how the answer broke off.
export function statusTag({ sent }) {
  const { status, broke } = sent;
  // An answer that broke off is a failure, whatever its status says.
  if (!status || broke) return tag([status, brokeOff(sent)].filter(Boolean).join(', ') || 'none', 'bad');
  if (status < 300) return tag(status, isJSON(sent) ? 'good' : 'bad');
  return tag(status, status < 500 ? 'warn' : 'bad');
}

// ago is a time in relative form, with the exact one where the mouse rests.
export function ago(iso) {
  const at = Date.parse(iso);
  return iso && h('time', { dateTime: iso, title: exact(at) }, relative(at, now()));
}

// exactAndAgo is a time in exact and in relative form.
export function exactAndAgo(iso) {
  return iso && [exact(Date.parse(iso)), ' ', h('small', ago(iso))];
}

// arrival is a time of day with milliseconds. Unlike a relative time, it does not change.
export function arrival(iso) {
  const at = new Date(iso);
  return h('time', { dateTime: iso, title: exact(at) }, `${timeOfDay(at)}.${String(at.getMilliseconds()).padStart(3, '0')}`);
}

// facts is a list of names and values; those without a value are left out.
export function facts(rows) {
  const present = rows.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return h('dl', present.map(([name, value]) => [h('dt', name), h('dd', value)]));
}

// mono is a value as it is; nothing where there is none.
export function mono(value) {
  return value && h('code', value);
}

// request is the method and the path of a call. The path may break after a slash.
export function request({ method, path }) {
  return [h('b', method), ' ', h('code', path.split(/(?<=\/)/).flatMap((part) => [part, h('wbr')]))];
}

// head is the line above a panel or a list: its title, and how many there are.
export function head(title, sum, ...rest) {
  return h('div.between', h('h2.title', title), h('small.sum', { role: 'status' }, sum), ...rest);
}

// choice is a select over [value, label] pairs. Its label is for screen readers alone.
export function choice(label, options, { value, ...rest }) {
  return h('select', { 'aria-label': label, ...rest }, options.map(([v, words]) => h('option', { key: v, value: v, selected: v === value }, words)));
}

// input is a field with its label above it; with rows it has several lines.
export function input(label, props) {
  return h('label', label, h(props.rows ? 'textarea' : 'input', props));
}

// select is a choice with its label above it.
export function select(label, options, props) {
  return h('label', label, choice(undefined, options, props));
}

// empty fills a panel that has nothing to show: a title, and what to do about it.
export function empty(title, ...rest) {
  return h('div.empty.stack', h('h2', title), ...rest);
}

// copy puts a value on the clipboard, which is there for https and loopback only.
async function copy(value, what) {
  // Over plain http from another machine there is no clipboard, and copied is
  // undefined.
  const copied = await navigator.clipboard?.writeText(value).then(() => true, () => false);
  notice(copied ? 'good' : 'bad', copied ? `Copied: ${what}.` : 'The browser does not let this page copy. Select the text and copy it by hand.');
}

// item is a line of a list at the side: a link with the name of what it opens. below is the
// second line.
export function item(page, id, open, state, ...below) {
  return h(
    'li',
    { key: id },
    h('a.item', { href: hrefOf(page, id), 'aria-current': open ? 'true' : undefined }, h('span.between', mono(id), state), h('small.between', ...below)),
  );
}

// code is a block of text to read or copy. It scrolls, so the keyboard must be
// able to reach it.
export function code(label, source, { copied = true } = {}) {
  return h(
    'figure',
    h('figcaption.between', h('small', label), copied && button('Copy', () => copy(source, label), { 'aria-label': `Copy ${label}` })),
    // As a region with a name, a screen reader can find it among others.
    h('pre', { tabIndex: 0, role: 'region', 'aria-label': label }, h('code', source)),
  );
}
