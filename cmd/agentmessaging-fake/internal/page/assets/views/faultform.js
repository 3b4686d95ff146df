// The form that turns a fault on. Which fields it has follows from the kind.
import { h, Component } from '../dom.js';
import { act, inWorld } from '../api.js';
import { form, input, select, submit } from '../parts/widgets.js';
import { endpoints } from './traffic.js';

// An input is [name, label, attributes]; the control interface has the same names.
const duration = ['duration', 'How long', { value: '2s', required: true }];
const bytes = ['bytes', 'Bytes that arrive', { type: 'number', min: 0, max: 1048576, value: 20, required: true }];
const status = ['status', 'Status', { type: 'number', min: 200, max: 599, value: 503, required: true }];
const body = ['body', 'Body', { placeholder: 'the service’s own' }];

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
};

// How a reply is lost, of those faults that happen in place of a call.
const losses = [
  ['reset_connection', 'Connection reset'],
  ['close_early', 'Connection closed'],
  ['hang', 'No answer at all'],
];

export class FaultForm extends Component {
  state = { kind: 'rate_limited' };

  render(_, { kind }) {
    const names = Object.entries(kinds).map(([value, [words]]) => [value, words]);
    return form(
      'New fault',
      (given) => act('The fault is on.', () => inWorld('POST', ['faults'], ruleOf(given))),
      select('Kind', names, { name: 'kind', value: kind, onChange: (e) => this.setState({ kind: e.target.value }) }),
      h('div.grid', { key: kind }, kinds[kind][1].map(member)),
      kind === 'lose_reply' && select('How', losses, { name: 'how' }),
      select('Endpoint', [['', 'Any'], ...endpoints.map((e) => [e, e])], { name: 'endpoint' }),
      h('div.grid', null, input('Times', { name: 'times', type: 'number', min: 1, placeholder: 'always' }), input('Key', { name: 'key', placeholder: 'any' })),
      h('div.row.actions', null, submit('Turn on')),
    );
  }
}

function member([name, label, { value, ...rest }]) {
  return input(label, { key: name, name, defaultValue: value, ...rest });
}

// ruleOf makes the body of the request of what was given.
function ruleOf({ endpoint, key, times, how, ...fault }) {
  for (const name of ['bytes', 'status']) if (name in fault) fault[name] = Number(fault[name]);
  if (how) fault.how = { kind: how };
  return { fault, match: { ...(endpoint && { endpoint }), ...(key && { key }) }, ...(times && { times: Number(times) }) };
}
