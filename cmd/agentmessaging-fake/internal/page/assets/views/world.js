// The world that is shown: scripted replies, snapshots, and what can be taken
// out of it or put in its place.
import { h } from '../dom.js';
import { state, change } from '../store.js';
import { act, actWithUndo, headers, inWorld, request, worldPath } from '../api.js';
import { plural } from '../format.js';
import { ago, both, button, empty, facts, field, form, head, input, mono, submit, tag } from '../parts/widgets.js';

export function World() {
  return h(
    'div.panel.two',
    null,
    h('section.side', { 'aria-label': 'New' }, head('World', mono(state.world)), h(NewReply), h(Files), h(NewWorld)),
    h('section.main', { 'aria-label': 'In force' }, h(Program), h(Replies), h(Snapshots)),
  );
}

function Program() {
  return facts([['Serves', mono(state.info?.base_url)], ['Version', state.info?.version], ['Started', both(state.info?.started_at)]]);
}

function NewReply() {
  const script = ({ replies, ...match }) => {
    const texts = replies.split('\n').filter(Boolean);
    act('The reply is scripted.', () => inWorld('POST', ['replies'], { match, replies: texts.map((words) => ({ text: words })) }));
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

function Replies() {
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
  return button('Remove', () => act('', () => inWorld('DELETE', path)), { small: true, 'aria-label': `Remove ${path.at(-1)}` });
}

function Snapshots() {
  const take = () => act('The snapshot is taken.', () => inWorld('POST', ['snapshots']));
  return h(
    'section.block.stack',
    { 'aria-label': 'Snapshots' },
    h('div.mainhead.between', null, h('h2', null, 'Snapshots'), button('Take one', take, { icon: 'plus', small: true })),
    h('p.hint', null, 'A snapshot holds agents, conversations, keys, provider keys and what is spent. To restore it does not set the clock back: what was spent in a window that is over by then stays open.'),
    h('ul', null, (state.snapshots ?? []).map((s) => h('li.rule.between', { key: s.id }, snapshot(s)))),
  );
}

function snapshot({ id, taken_at: at }) {
  const restore = () => actWithUndo(`The world is as in ${id}.`, () => inWorld('POST', ['snapshots', id, 'restore']));
  return [
    h('span.row', null, mono(id), ago(at)),
    h('span.row', null, button('Restore', restore, { small: true, 'aria-label': `Restore ${id}` }), remove(['snapshots', id])),
  ];
}

function Files() {
  const upload = async (event) => {
    const [file] = event.target.files;
    event.target.value = '';
    if (file) await actWithUndo(`The world is as in ${file.name}.`, async () => inWorld('PUT', ['state'], JSON.parse(await file.text())));
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
  const make = (given) =>
    act('', async () => {
      const made = await request('POST', '/_fake/v1/worlds', given);
      change({ dialog: { kind: 'issued', label: `the first of world ${made.name}`, plan: made.plan, secret: made.key, world: made.name } });
    });
  return h(
    'div.card',
    null,
    form(
      'Make a world',
      make,
      input('New world', { name: 'name', placeholder: 'a name, or none', maxLength: 63, pattern: '[a-z0-9][a-z0-9\\-]*' }),
      h('div.row.actions', null, submit('Make it', { kind: '', icon: 'plus' })),
    ),
  );
}
