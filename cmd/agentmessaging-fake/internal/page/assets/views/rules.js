// Rules: what goes wrong on purpose, and what agents are to reply. At the left is the
// form for a new rule, at the right what is in force.
import { h, Component } from '../dom.js';
import { state } from '../store.js';
import { act, control } from '../api.js';
import { plural } from '../format.js';
import { button, empty, form, head, input, mono, select, submit, tag } from '../widgets.js';
import { endpointChoices } from './traffic.js';

export function Rules() {
  const { faults, replies } = state;
  // Nothing is shown before both lists are there: half a list would say that there are
  // no more.
  const all = faults && replies && [...faults.map(faultRow), ...replies.map(replyRow)];
  return h(
    'div.panel.two',
    h('section', { 'aria-label': 'New' }, head('Rules'), h('div.card', h(RuleForm))),
    h(
      'section.main',
      { 'aria-label': 'In force' },
      head('In force', all?.length > 0 && plural(all.length, 'rule')),
      all && (all.length ? h('ul.lines', all) : nothing()),
    ),
  );
}

// nothing is what the list shows while no rule is in force.
function nothing() {
  return empty(
    'Every call goes through',
    h('p', 'Turn a fault on to see how your application takes it: an error, a slow answer, a connection that breaks. Or script what agents reply instead of "You wrote:" and the text.'),
  );
}

// faultRow and replyRow are a fault and a script in the list: what each does, how often it
// has acted, and on which calls.
function faultRow(fault) {
  return row(['faults', fault.id], fault.name, fault.hits, conditions(fault, 'every call'));
}

function replyRow(script) {
  // An error in place of a text shows as its status.
  const texts = script.replies.map((r) => r.text ?? r.status).join(' · ');
  return row(['replies', script.id], texts, script.hits, conditions(script, 'every message'));
}

// row is a rule in the list. path is where the control interface removes it.
function row(path, name, hits, words) {
  return h(
    'li.rule.between',
    { key: path.join(' ') },
    h('div', h('div.row', mono(name), tag(plural(hits, 'hit'), hits ? 'fault' : '')), h('small', words)),
    // The label names the rule, since a list has many such buttons.
    button('Remove', () => act('', () => control('DELETE', path)), { 'aria-label': `Remove ${name}` }),
  );
}

// How each member of a match reads in a sentence.
const matchWords = { endpoint: 'on', key: 'with key', agent_id: 'for agent', text: 'with the text', text_containing: 'with a text containing' };

// conditions says in one sentence on which calls a rule acts.
function conditions({ match, times, from, nth, chance, seed }, every) {
  // In the order of matchWords; then how often, and by chance.
  const words = Object.entries(matchWords).filter(([name]) => match?.[name]).map(([name, before]) => `${before} ${match[name]}`);
  if (!words.length) words.push(`on ${every}`);
  if (from) words.push(`from call number ${from} that matches`);
  if (times) words.push(times === 1 ? 'once' : `${times} times`);
  if (nth) words.push(`only the call number ${nth} that matches`);
  if (chance !== undefined) words.push(`with probability ${chance}${seed === undefined ? '' : `, seed ${seed}`}`);
  const sentence = words.join(', ');
  return `${sentence[0].toUpperCase()}${sentence.slice(1)}.`;
}

// An input is [name, label, attributes]; the control interface has the same names. The
// value is one with which the fault shows well.
const duration = ['duration', 'How long', { value: '2s', required: true }];
const bytes = ['bytes', 'Bytes that arrive', { type: 'number', min: 0, max: 1048576, value: 20, required: true }];
const status = ['status', 'Status', { type: 'number', min: 200, max: 599, value: 503, required: true }];
const body = ['body', 'Body', { placeholder: 'the service’s own' }];

// The kinds, the most used first. Each form can be sent without being filled in. The
// names are those of the control interface, except reply, which is a script.
const kinds = {
  rate_limited: ['Rate limited (429)', [['retry_after', 'Retry-After', { value: '30' }]]],
  answer: ['Error answer', [status, body]],
  raw_answer: ['Answer of a gateway', [['status', 'Status', { ...status[2], value: 502 }], ['content_type', 'Content-Type', { value: 'text/html' }], ['body', 'Body', { value: '<h1>Bad gateway</h1>' }]]],
  latency: ['Latency before the call', [duration]],
  hang: ['No answer at all', []],
  close_early: ['Connection closed', []],
  reset_connection: ['Connection reset', []],
  lose_reply: ['Reply lost after the call took effect', []],
  truncate_reply: ['Reply cut off', [bytes]],
  reset_reply: ['Reply broken off by a reset', [bytes]],
  go_away: ['Connection used up: GOAWAY', []],
  drip_reply: ['Reply that drips', [['bytes', 'Bytes at a time', { ...bytes[2], min: 1, value: 4 }], ['every', 'Time between', { value: '250ms', required: true }]]],
  reply: ['Scripted reply', [['texts', 'Replies', { rows: 3, placeholder: 'One a line, given in order' }], ['warnings', 'Warnings', { rows: 3, placeholder: 'One a line, with each reply' }], ['error', 'Then an error status', { type: 'number', min: 400, max: 429, placeholder: 'none' }], ['reason', 'Its reason', { placeholder: 'none' }]]],
};

// How a reply is lost, of those faults that happen in place of a call.
const losses = ['reset_connection', 'close_early', 'hang'].map((kind) => [kind, kinds[kind][0]]);

// RuleForm adds a rule. Which fields it has follows from the kind.
class RuleForm extends Component {
  state = { kind: 'rate_limited' };

  render(_, { kind }) {
    // The kind chooses the inputs. The conditions below them are the same for all
    // faults; a script has fewer, since it is for messages alone.
    const names = Object.entries(kinds).map(([value, [words]]) => [value, words]);
    const isReply = kind === 'reply';
    return form(
      'New rule',
      (given) => act('The rule is in force.', () => control('POST', [isReply ? 'replies' : 'faults'], isReply ? scriptOf(given) : faultOf(given))),
      select('Kind', names, { name: 'kind', value: kind, onChange: (e) => this.setState({ kind: e.target.value }) }),
      // With the kind as key the browser makes new inputs, which begin with the values
      // of the kind.
      h('div.grid', { key: kind }, kinds[kind][1].map(member)),
      kind === 'lose_reply' && select('How', losses, { name: 'how' }),
      !isReply && select('Endpoint', endpointChoices('Any'), { name: 'endpoint' }),
      h('div.grid', input('Times', { name: 'times', type: 'number', min: 1, placeholder: 'always' }), input('Key', { name: 'key', placeholder: 'any' })),
      h(
        'details',
        h('summary', 'Only some calls'),
        h(
          'div.grid',
          input('Agent', { name: 'agent_id', placeholder: 'any' }),
          input('Text containing', { name: 'text_containing', placeholder: 'any' }),
          !isReply && [
            input('The n-th that matches', { name: 'nth', type: 'number', min: 1, placeholder: 'each' }),
            input('From the n-th on', { name: 'from', type: 'number', min: 1, placeholder: 'the first' }),
            input('Chance', { name: 'chance', type: 'number', min: 0, max: 1, step: 'any', placeholder: '1' }),
          ],
        ),
      ),
      h('div.row.end', submit('Turn on')),
    );
  }
}

// member is an input of a kind, with the value that it begins with.
function member([name, label, { value, ...rest }]) {
  return input(label, { key: name, name, defaultValue: value, ...rest });
}

// faultOf and scriptOf make the body of the request of what was given. JSON leaves out
// what is undefined.
function faultOf({ how, ...given }) {
  const { endpoint, key, agent_id, text_containing, times, nth, from, chance, ...fault } = given;
  // A reply that is lost holds another fault, as in the control interface.
  if (how) fault.how = { kind: how };
  return { fault, match: { endpoint, key, agent_id, text_containing }, times, nth, from, chance };
}

function scriptOf({ texts, warnings, error, reason, key, agent_id, text_containing, times }) {
  // One reply a line. Without a warning there is no list of them.
  const lines = (text) => text?.split('\n').filter(Boolean);
  // After the last text an error may come; the last step of a script repeats.
  const replies = (lines(texts) ?? []).map((text) => ({ text, warnings: lines(warnings) }));
  // reason goes with an error alone.
  if (error) replies.push({ status: error, reason });
  return { match: { key, agent_id, text_containing }, replies, times };
}
