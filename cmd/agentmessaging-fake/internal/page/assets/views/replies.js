// Scripted replies, and the calls and the state as files.
import { h } from '../dom.js';
import { state } from '../store.js';
import { act, control, controlPath, headers } from '../api.js';
import { plural } from '../format.js';
import { both, button, empty, facts, field, form, head, input, mono, submit, tag } from '../parts/widgets.js';

export function Replies() {
  return h(
    'div.panel.two',
    null,
    h('section.side', { 'aria-label': 'New' }, head('Replies'), h(NewReply), h(Files)),
    h('section.main', { 'aria-label': 'In force' }, h(Program), h(Scripted)),
  );
}

function Program() {
  return facts([['Serves', mono(state.info?.base_url)], ['Version', state.info?.version], ['Started', both(state.info?.started_at)]]);
}

function NewReply() {
  const script = ({ replies, ...match }) => {
    const texts = replies.split('\n').filter(Boolean);
    act('The reply is scripted.', () => control('POST', ['replies'], { match, replies: texts.map((words) => ({ text: words })) }));
  };
  return h(
    'div.card',
    null,
    form(
      'New reply',
      script,
      input('Replies', { name: 'replies', rows: 3, required: true, placeholder: 'One a line, given in order' }),
      input('To messages that contain', { name: 'text_containing', placeholder: 'any message' }),
      h('div.row.actions', null, submit('Script it')),
    ),
  );
}

function Scripted() {
  const all = state.replies;
  return h(
    'section.block.stack',
    { 'aria-label': 'Scripted replies' },
    h('h2', null, 'Scripted replies'),
    all && (all.length ? h('ul', null, all.map((r) => h('li.rule.between', { key: r.id }, reply(r)))) : empty('Every agent answers "You wrote:" and the text', h('p', null, 'Script what agents are to say instead.'))),
  );
}

function reply({ id, match, replies, hits }) {
  const to = Object.entries(match ?? {}).map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`).join(', ');
  return [
    h('div', null, h('div.row', null, mono(to || 'any message'), tag(plural(hits, 'hit'), hits ? 'good' : '')), h('p', null, replies.map((r) => r.text ?? r.status).join(' · '))),
    remove(['replies', id]),
  ];
}

function remove(path) {
  return button('Remove', () => act('', () => control('DELETE', path)), { small: true, 'aria-label': `Remove ${path.at(-1)}` });
}

function Files() {
  const upload = async (event) => {
    const [file] = event.target.files;
    event.target.value = '';
    if (file) await act(`The state is as in ${file.name}.`, async () => control('PUT', ['state'], JSON.parse(await file.text())));
  };
  return h(
    'div.card.stack',
    { role: 'group', 'aria-label': 'Files' },
    h('div.row', null, button('Download calls (HAR)', () => download('calls.har'), { small: true }), button('Download state', () => download('state'), { small: true })),
    field('Put a state in its place', h('input', { type: 'file', accept: 'application/json', onChange: upload })),
  );
}

// download asks with the token, which a link could not carry.
function download(name) {
  act('', async () => {
    const resp = await fetch(controlPath(name), { headers: headers(), cache: 'no-store' });
    const link = Object.assign(document.createElement('a'), {
      href: URL.createObjectURL(await resp.blob()),
      download: name === 'state' ? 'state.json' : name,
    });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
