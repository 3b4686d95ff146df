// The form that turns a fault on. Which fields it has follows from the kind.
import { h, Component } from '../dom.js';
import { act, request, worldPath } from '../api.js';
import { loadFaults } from '../sync.js';
import { button, field } from '../parts/widgets.js';
import { endpoints } from './traffic.js';

// An input is [name, label, attributes]; the names are those of the interface.
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

  submit = (event) => {
    event.preventDefault();
    const rule = ruleOf(new FormData(event.target));
    act('The fault is on.', async () => {
      await request('POST', worldPath('faults'), rule);
      loadFaults();
    });
  };

  render(_, { kind }) {
    return h(
      'form.stack',
      { onSubmit: this.submit, 'aria-label': 'New fault' },
      field('Kind', h('select', { name: 'kind', onChange: (e) => this.setState({ kind: e.target.value }) }, Object.entries(kinds).map(([value, [words]]) => h('option', { key: value, value, selected: value === kind }, words)))),
      h('div.grid', { key: kind }, kinds[kind][1].map(input)),
      kind === 'lose_reply' && field('How', h('select', { name: 'how' }, losses.map(([value, words]) => h('option', { key: value, value }, words)))),
      field('Endpoint', h('select', { name: 'endpoint' }, [['', 'Any'], ...endpoints.map((e) => [e, e])].map(([value, words]) => h('option', { key: value, value }, words)))),
      h('div.grid', null, input(['times', 'Times', { type: 'number', min: 1, placeholder: 'always' }]), input(['key', 'Key', { placeholder: 'any' }])),
      h('div.actions', null, button('Turn on', null, { kind: 'primary', type: 'submit' })),
    );
  }
}

function input([name, label, { value, ...rest }]) {
  return field(label, h('input', { key: name, name, defaultValue: value, ...rest }));
}

const numbers = ['bytes', 'status', 'times'];

// ruleOf makes the body of the request; what was left empty is left out.
function ruleOf(form) {
  const given = [...form].filter(([, value]) => value !== '');
  const { endpoint, key, times, how, ...fault } = Object.fromEntries(given.map(([name, value]) => [name, numbers.includes(name) ? Number(value) : value]));
  const rule = { fault: how ? { ...fault, how: { kind: how } } : fault };
  const match = { ...(endpoint && { endpoint }), ...(key && { key }) };
  if (Object.keys(match).length) rule.match = match;
  if (times) rule.times = times;
  return rule;
}
