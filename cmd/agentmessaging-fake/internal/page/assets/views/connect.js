// What to do where nothing has happened yet.
import { h } from '../dom.js';
import { state } from '../store.js';
import { hrefOf } from '../route.js';
import { exportLines } from '../snippets.js';
import { code } from '../parts/widgets.js';

const curlLine = `curl -sS "$AGENT_MESSAGING_BASE_URL/v1/status" \\
  -H "Authorization: Bearer $AGENT_MESSAGING_API_KEY"`;

export function Connect() {
  const own = state.world === 'default';
  return h(
    'div.stack',
    null,
    h('p', null, 'Point your application at this fake. ', own ? 'The program printed the key when it started. ' : `The world ${state.world} has a key of its own. `, h('a', { href: hrefOf('keys') }, 'Issue another'), ' if it is gone.'),
    code('Environment', exportLines(own ? 'the key that the program printed' : `amk_world_${state.world}`), { kind: 'snippet' }),
    h('p', null, 'Or make a first call by hand:'),
    code('curl', curlLine, { kind: 'snippet' }),
  );
}
