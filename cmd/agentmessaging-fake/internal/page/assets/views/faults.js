// Faults: what goes wrong on purpose.
import { h, text } from '../dom.js';
import { state } from '../store.js';
import { act, inWorld, worldPath } from '../api.js';
import { plural } from '../format.js';
import { controlCurl } from '../snippets.js';
import { button, code, empty, head, mono, tag } from '../parts/widgets.js';
import { FaultForm } from './faultform.js';

export function Faults() {
  // A fault that has acted as often as it was to is no longer in force.
  const faults = (state.faults ?? []).filter((f) => !(f.times && f.hits >= f.times) && !(f.nth && f.hits > 0));
  return h(
    'div.panel.two',
    null,
    h('section.side', { 'aria-label': 'New fault' }, head('Faults'), h('div.card', null, h(FaultForm))),
    h(
      'section.main',
      { 'aria-label': 'Faults in force' },
      h('div.mainhead.between', null, h('h2', null, 'In force'), h('p.sum', null, faults.length ? plural(faults.length, 'fault') : '')),
      state.faults && (faults.length ? h('ul', null, faults.map((f) => h('li.rule', { key: f.id }, rule(f)))) : nothing()),
    ),
  );
}

function nothing() {
  return empty(
    'Every call goes through',
    h('p', null, 'Turn a fault on to see how your application takes it: an error, a slow answer, a connection that breaks. By hand:'),
    code('curl', controlCurl(worldPath('faults'), { fault: { kind: 'rate_limited', retry_after: '30' }, times: 1 }), { kind: 'snippet' }),
  );
}

function rule(f) {
  const remove = () => act(`${text(f.name)} is off.`, () => inWorld('DELETE', ['faults', f.id]));
  return [
    h('div.row', null, mono(f.name), tag(plural(f.hits, 'hit'), f.hits ? 'fault' : '')),
    h('p', null, conditions(f)),
    button('Remove', remove, { small: true, 'aria-label': `Remove ${text(f.name)}` }),
  ];
}

const matchWords = { endpoint: 'on', key: 'with key', agent_id: 'for agent', text: 'with the text', text_containing: 'with a text containing' };

function conditions({ match, times, from, nth, chance, seed }) {
  const words = Object.entries(matchWords).filter(([name]) => match?.[name]).map(([name, before]) => `${before} ${text(match[name])}`);
  if (!words.length) words.push('on every call');
  if (from) words.push(`from call number ${from} that matches`);
  if (times) words.push(times === 1 ? 'once' : `${times} times`);
  if (nth) words.push(`only the call number ${nth} that matches`);
  if (chance !== undefined) words.push(`with probability ${chance}${seed === undefined ? '' : `, seed ${seed}`}`);
  const sentence = words.join(', ');
  return `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
}
