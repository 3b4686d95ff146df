// The SMS channel of an agent, and the buttons that move it.
import { h } from '../dom.js';
import { act, inWorld } from '../api.js';
import { button, facts, form, input, mono, submit, tag } from '../parts/widgets.js';

const tones = { active: 'good', pending: 'warn', needs_setup: 'warn', needs_compliance: 'warn' };

export function smsTag(status, before = '') {
  return tag(before + status, tones[status]);
}

const others = ['pending', 'needs_setup', 'needs_compliance', 'disabled'];

export function SMS({ agent: { agent_id: id, sms } }) {
  const set = (status, more) => act(`SMS of ${id} is ${status}.`, () => inWorld('PUT', ['agents', id, 'sms'], { status, ...more }));
  return h(
    'section.stack',
    { 'aria-label': 'SMS channel' },
    h('h3', null, 'SMS channel'),
    sms
      ? facts([
          ['Status', smsTag(sms.status)],
          ['Mode', mono(sms.mode)],
          ['Number', mono(sms.phone_number)],
        ])
      : h('p.hint', null, 'Never asked for.'),
    form(
      'Set active',
      ({ number }) => set('active', { phone_number: number?.trim() ?? '' }),
      input('Number', { name: 'number', type: 'tel', defaultValue: '+15555550100', maxLength: 64 }),
      h('div.row', { role: 'group', 'aria-label': 'States' }, submit('Set active', { kind: '' }), others.map((status) => button(status, () => set(status), { key: status, small: true, disabled: sms?.status === status }))),
    ),
  );
}
