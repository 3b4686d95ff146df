// Scripted replies, and the calls and the state as files.
import { h } from '../dom.js';
import { state } from '../store.js';
import { act, control, controlPath, headers } from '../api.js';
import { plural } from '../format.js';
import { both, button, empty, facts, field, form, head, input, mono, select, submit, tag } from '../parts/widgets.js';

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
  const script = (given) => act('The reply is scripted.', () => control('POST', ['replies'], scriptOf(given)));
  return h(
    'div.card',
    null,
    form(
      'New reply',
      script,
      input('Replies', { name: 'texts', rows: 3, placeholder: 'One a line, given in order' }),
      input('To messages that contain', { name: 'text_containing', placeholder: 'any message' }),
      h(
        'details',
        null,
        h('summary', null, 'Warnings, errors, and only some messages'),
        h(
          'div.grid',
          null,
          input('Warnings', { name: 'warnings', rows: 2, placeholder: 'One a line, with each reply' }),
          select('Or an error', [['', 'None'], ...['400', '401', '402', '404', '429'].map((s) => [s, s])], { name: 'status' }),
          input('Its reason', { name: 'reason', placeholder: 'none' }),
          input('Agent', { name: 'agent_id', placeholder: 'any' }),
          input('Key', { name: 'key', placeholder: 'any' }),
          input('Times', { name: 'times', type: 'number', min: 1, placeholder: 'always' }),
        ),
      ),
      h('div.row.actions', null, submit('Script it')),
    ),
  );
}

// scriptOf makes the body of the request; an error comes after the texts.
function scriptOf({ texts, warnings, status, reason, times, ...match }) {
  const lines = (text) => (text ?? '').split('\n').filter(Boolean);
  const replies = lines(texts).map((text) => ({ text, warnings: warnings && lines(warnings) }));
  if (status) replies.push({ status: Number(status), reason });
  return { match, replies, times: times && Number(times) };
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
