// The world that is shown: scripted replies, snapshots, and what can be taken
// out of it or put in its place.
import { h, text } from '../dom.js';
import { state, change } from '../store.js';
import { act, headers, request, worldPath } from '../api.js';
import { loadReplies, loadSnapshots } from '../sync.js';
import { plural } from '../format.js';
import { ago, button, empty, field, mono, tag } from '../parts/widgets.js';

export function World() {
  return h(
    'div.panel.two',
    null,
    h('section.side', { 'aria-label': 'New' }, h('div.panelhead', null, h('h1', null, 'World'), h('p.sum', null, mono(state.world))), h(NewReply), h(Files), h(NewWorld)),
    h('section.main', { 'aria-label': 'In force' }, h(Replies), h(Snapshots)),
  );
}

function NewReply() {
  const submit = (event) => {
    event.preventDefault();
    const { replies, text_containing: part } = Object.fromEntries(new FormData(event.target));
    const texts = replies.split('\n').filter(Boolean);
    act('The reply is scripted.', async () => {
      await request('POST', worldPath('replies'), { match: part ? { text_containing: part } : {}, replies: texts.map((words) => ({ text: words })) });
      loadReplies();
    });
  };
  return h(
    'form.stack',
    { onSubmit: submit, 'aria-label': 'New reply' },
    field('Replies', h('textarea', { name: 'replies', rows: 3, required: true, placeholder: 'One a line, given in order' })),
    field('To messages that contain', h('input', { name: 'text_containing', placeholder: 'any message' })),
    h('div.actions', null, button('Script it', null, { kind: 'primary', type: 'submit' })),
  );
}

function Replies() {
  const all = state.replies;
  return h(
    'section.block',
    { 'aria-label': 'Scripted replies' },
    h('h2', null, 'Scripted replies'),
    all && (all.length ? h('ul.rules', null, all.map((r) => h('li.rule', { key: r.id }, reply(r)))) : empty('Every agent answers "You wrote:" and the text', h('p', null, 'Script what agents are to say instead.'))),
  );
}

function reply({ id, match, replies, hits }) {
  const to = Object.entries(match ?? {}).map(([name, value]) => `${name.replaceAll('_', ' ')} ${text(value)}`).join(', ');
  return [
    h('div.rulehead', { key: 'head' }, mono(to || 'any message'), tag(plural(hits, 'hit'), hits ? 'good' : 'quiet')),
    h('p', { key: 'says' }, replies.map((r) => text(r.text ?? r.status)).join(' · ')),
    button('Remove', () => act('', () => request('DELETE', worldPath('replies', id))).then(loadReplies), { key: 'remove', small: true, 'aria-label': `Remove ${id}` }),
  ];
}

function Snapshots() {
  const take = () => act('The snapshot is taken.', () => request('POST', worldPath('snapshots'))).then(loadSnapshots);
  return h(
    'section.block',
    { 'aria-label': 'Snapshots' },
    h('div.mainhead', null, h('h2', null, 'Snapshots'), button('Take one', take, { icon: 'plus', small: true })),
    h('p.hint', null, 'Agents, conversations, keys, provider keys and what is spent. The clock does not go back.'),
    h('ul.rules', null, (state.snapshots ?? []).map((s) => h('li.rule', { key: s.id }, snapshot(s)))),
  );
}

function snapshot({ id, taken_at: at }) {
  const path = worldPath('snapshots', id);
  return [
    h('div.rulehead', { key: 'head' }, mono(id), ago(at)),
    h(
      'div.actions',
      { key: 'acts' },
      button('Restore', () => act(`The world is as in ${id}.`, () => request('POST', `${path}/restore`)), { small: true, 'aria-label': `Restore ${id}` }),
      button('Remove', () => act('', () => request('DELETE', path)).then(loadSnapshots), { small: true, 'aria-label': `Remove ${id}` }),
    ),
  ];
}

function Files() {
  const upload = async (event) => {
    const [file] = event.target.files;
    event.target.value = '';
    if (file) await act(`The world is as in ${file.name}.`, async () => request('PUT', worldPath('state'), JSON.parse(await file.text())));
  };
  return h(
    'div.stack',
    { role: 'group', 'aria-label': 'Files' },
    h('div.actions', null, button('Download calls (HAR)', () => download('calls.har'), { small: true }), button('Download state', () => download('state'), { small: true })),
    field('Put a state in its place', h('input', { type: 'file', accept: 'application/json', onChange: upload })),
  );
}

// download asks with the token, which a link could not carry.
function download(name) {
  act('', async () => {
    const resp = await fetch(worldPath(name), { headers: headers(), cache: 'no-store' });
    const link = Object.assign(document.createElement('a'), {
      href: URL.createObjectURL(await resp.blob()),
      download: name === 'state' ? `${state.world}.json` : name,
    });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

function NewWorld() {
  const submit = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get('name').trim();
    act('', async () => {
      const made = await request('POST', '/_fake/v1/worlds', name ? { name } : {});
      change({ dialog: { kind: 'issued', label: `the first of world ${made.name}`, plan: made.plan, secret: made.key, world: made.name } });
    });
  };
  return h(
    'form.stack',
    { onSubmit: submit, 'aria-label': 'Make a world' },
    field('New world', h('input', { name: 'name', placeholder: 'a name, or none', maxLength: 63, pattern: '[a-z0-9][a-z0-9\\-]*' })),
    h('div.actions', null, button('Make it', null, { type: 'submit', icon: 'plus' })),
  );
}
