// How the fake answers what the interface leaves open, and which of these answers a
// service was observed to give.
import { h } from '../dom.js';
import { state } from '../store.js';
import { head, mono, tag } from '../widgets.js';

// Decisions is a list to read: they are chosen when the program starts, so nothing here
// changes them.
export function Decisions() {
  const all = state.decisions ?? [];
  const observed = all.filter((d) => d.observed).length;
  return h(
    'div.panel',
    h(
      'section.main',
      { 'aria-label': 'Decisions', tabIndex: 0 },
      head('Decisions', state.decisions && `${observed} of ${all.length} observed`),
      h('p', 'The interface leaves these questions open. A guessed answer is the fake’s own; a service may answer otherwise. ', mono('agentmessaging-fake observe'), ' asks a service, and ', mono('--like'), ' takes its answers.'),
      h('ul.lines', all.map(decision)),
    ),
  );
}

// decision is a question, and where its answer is from.
function decision({ id, question, answer, observed }) {
  return h(
    'li.rule.between',
    { key: id },
    h('div', question, ' ', h('small', mono(id))),
    h('div', tag(observed ? 'observed' : 'guessed', observed ? 'good' : ''), ' ', mono(words(answer))),
  );
}

// words is an answer as a person says it. Of an object it names the members, and the
// value of a member only where that differs from the name.
function words(answer) {
  if (typeof answer === 'boolean') return answer ? 'yes' : 'no';
  if (typeof answer !== 'object') return String(answer);
  return Object.entries(answer).map(([name, value]) => (name === value ? name : `${name}: ${words(value)}`)).join(', ');
}
