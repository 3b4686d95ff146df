// The dialogs that are not part of one panel.
import { h } from '../dom.js';
import { state } from '../store.js';
import { setToken } from '../api.js';
import { start } from '../sync.js';
import { quoteShell } from '../snippets.js';
import { Dialog, Confirm, closeDialog } from '../parts/dialog.js';
import { button, code, field, mono } from '../parts/widgets.js';

export function CurrentDialog() {
  const { kind, ...props } = state.dialog;
  return h({ confirm: Confirm, token: TokenDialog, issued: IssuedDialog }[kind], props);
}

function TokenDialog({ refused }) {
  const submit = (event) => {
    event.preventDefault();
    setToken(new FormData(event.target).get('token').trim());
    event.target.reset();
    closeDialog();
    start();
  };
  return h(
    Dialog,
    { title: 'Control token' },
    h('p', null, 'This fake is not on loopback, so it asks for the token that it printed when it started. The token stays in this tab.'),
    h(
      'form',
      { onSubmit: submit },
      refused && h('p.refused', { role: 'alert' }, 'That was not the token.'),
      field('Token', h('input', { name: 'token', type: 'password', required: true, autoComplete: 'off', autoFocus: true })),
      h('div.actions', null, button('Continue', null, { kind: 'primary', type: 'submit' })),
    ),
  );
}

// IssuedDialog is the only place that shows a key, and only once: the fake
// keeps it, the page does not.
function IssuedDialog({ label, plan, secret, world }) {
  return h(
    Dialog,
    { title: 'The new key' },
    h('p', null, 'Copy it now: it is not shown again. The page calls it ', mono(label), `, plan ${plan}.`),
    code('API key', secret),
    code('Environment', exportLines(secret)),
    h('div.actions', null, world && h('a', { href: `/?world=${encodeURIComponent(world)}` }, `Open the world ${world}`), button('Done', closeDialog, { kind: 'primary' })),
  );
}

export function exportLines(secret) {
  const base = state.info?.base_url ?? location.origin;
  return `export AGENT_MESSAGING_BASE_URL=${word(base)}\nexport AGENT_MESSAGING_API_KEY=${word(secret)}`;
}

// controlCurl is a call of the control interface for a shell, with the token
// that a fake on another machine asks for.
export function controlCurl(path, body) {
  const token = state.info?.remote ? '  -H "Authorization: Bearer $AGENT_MESSAGING_FAKE_TOKEN" \\\n' : '';
  return `curl -sS ${location.origin}${path} \\\n${token}  -H 'Content-Type: application/json' \\\n  --data-raw ${quoteShell(JSON.stringify(body))}`;
}

// word is one word to a shell.
function word(s) {
  return /^[\w\-./:]+$/.test(s) ? s : quoteShell(s);
}
