// The SMS channel of an agent, and the buttons that move it.
import { h, text, Component } from '../dom.js';
import { act, request, worldPath } from '../api.js';
import { reload } from '../sync.js';
import { button, facts, field, mono, tag } from '../parts/widgets.js';

const tones = { active: 'good', disabled: 'plain', pending: 'warn', needs_setup: 'warn', needs_compliance: 'warn' };

export function smsTone(status) {
  return tones[status] ?? 'plain';
}

const others = ['pending', 'needs_setup', 'needs_compliance', 'disabled'];

export class SMS extends Component {
  state = { number: '+15555550100' };

  set = (status) => {
    const { agent_id: id } = this.props.agent;
    const body = status === 'active' ? { status, phone_number: this.state.number.trim() } : { status };
    act(`SMS of ${id} is ${status}.`, async () => {
      await request('PUT', worldPath('agents', encodeURIComponent(id), 'sms'), body);
      reload('agents');
    });
  };

  render({ agent }, { number }) {
    const { sms } = agent;
    return h(
      'section.sms',
      { 'aria-label': 'SMS channel' },
      h('h3', null, 'SMS channel'),
      sms
        ? facts([
            ['Status', tag(sms.status, smsTone(sms.status))],
            ['Mode', text(sms.mode) && mono(sms.mode)],
            ['Number', text(sms.phone_number) && mono(sms.phone_number)],
          ])
        : h('p.none', null, 'Never asked for.'),
      h(
        'form.row',
        { onSubmit: (e) => (e.preventDefault(), this.set('active')) },
        field('Number', h('input', { type: 'tel', value: number, maxLength: 64, onInput: (e) => this.setState({ number: e.target.value }) })),
        button('Set active', null, { type: 'submit' }),
      ),
      h('div.row', { role: 'group', 'aria-label': 'Other states' }, others.map((status) => button(status, () => this.set(status), { key: status, small: true, disabled: sms?.status === status }))),
    );
  }
}
