// Faults: what goes wrong on purpose.
import { h, text } from '../dom.js';
import { state } from '../store.js';
import { act, request, worldPath } from '../api.js';
import { loadFaults } from '../sync.js';
import { plural } from '../format.js';
import { button, code, empty, mono, tag } from '../parts/widgets.js';
import { controlCurl } from './dialogs.js';
import { FaultForm } from './faultform.js';

export function Faults() {
  // A fault that has acted as often as it was to is no longer in force.
  const faults = (state.faults ?? []).filter((f) => !(f.times && f.hits >= f.times) && !(f.nth && f.hits > 0));
  return h(
    'div.panel.two.faults',
    null,
    h('section.side', { 'aria-label': 'New fault' }, h('div.panelhead', null, h('h1', null, 'Faults')), h(FaultForm)),
    h(
      'section.main',
      { 'aria-label': 'Faults in force' },
      h('div.mainhead', null, h('h2', null, 'In force'), h('p.sum', null, faults.length ? plural(faults.length, 'fault') : '')),
      state.faults && (faults.length ? h('ul.rules', null, faults.map((f) => h('li.rule', { key: f.id }, rule(f)))) : nothing()),
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
  return [
    h('div.rulehead', { key: 'head' }, mono(f.name), tag(plural(f.hits, 'hit'), f.hits ? 'fault' : 'quiet')),
    h('p', { key: 'when' }, conditions(f)),
    button('Remove', () => remove(f), { key: 'remove', small: true, 'aria-label': `Remove ${text(f.name)}` }),
  ];
}

const matchWords = { endpoint: 'on', key: 'with key', agent_id: 'for agent', text: 'with the text', text_containing: 'with a text containing' };

function conditions({ match, times, nth, chance, seed }) {
  const words = Object.entries(matchWords).filter(([name]) => match?.[name]).map(([name, words]) => `${words} ${text(match[name])}`);
  if (!words.length) words.push('on every call');
  if (times) words.push(times === 1 ? 'once' : `${times} times`);
  if (nth) words.push(`only the call number ${nth} that matches`);
  if (chance !== undefined) words.push(`with probability ${chance}${seed === undefined ? '' : `, seed ${seed}`}`);
  return sentenceCase(words.join(', '));
}

function sentenceCase(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

function remove(f) {
  act(`${text(f.name)} is off.`, async () => {
    await request('DELETE', worldPath('faults', encodeURIComponent(f.id)));
    loadFaults();
  });
}
