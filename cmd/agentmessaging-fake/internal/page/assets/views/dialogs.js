// The dialogs that are not part of one panel.
import { h, Component } from '../dom.js';
import { state, change } from '../store.js';
import { setToken } from '../api.js';
import { start } from '../sync.js';
import { exportLines } from '../snippets.js';
import { button, code, form, input, mono, submit } from '../parts/widgets.js';

export function CurrentDialog() {
  const { kind, ...props } = state.dialog;
  return h({ confirm: Confirm, token: TokenDialog, issued: IssuedDialog }[kind], props);
}

function closeDialog() {
  change({ dialog: null });
}

// Dialog is modal. The browser's own keeps the focus inside, closes with Escape
// and gives the focus back.
class Dialog extends Component {
  show = (element) => {
    this.element = element;
  };

  componentDidMount() {
    this.element.addEventListener('close', closeDialog);
    this.element.showModal();
  }

  // Its event comes later, when another dialog may be there already.
  componentWillUnmount() {
    this.element.removeEventListener('close', closeDialog);
    this.element.close();
  }

  render({ title, children }) {
    return h('dialog', { ref: this.show, 'aria-labelledby': 'dialog-title' }, h('div.stack', null, h('h2', { id: 'dialog-title' }, title), children));
  }
}

// Confirm asks before something is done that cannot be taken back.
function Confirm({ title, words, label, run }) {
  const yes = () => {
    closeDialog();
    run();
  };
  return h(
    Dialog,
    { title },
    h('p', null, words),
    h('div.row.actions', null, button('Cancel', closeDialog), button(label, yes, { kind: 'danger' })),
  );
}

function TokenDialog({ refused }) {
  const take = ({ token }) => {
    setToken(token.trim());
    closeDialog();
    start();
  };
  return h(
    Dialog,
    { title: 'Control token' },
    h('p', null, 'This fake is not on loopback, so it asks for the token that it printed when it started. The token stays in this tab.'),
    form(
      undefined, // the dialog has the name
      take,
      refused && h('p.refused', { role: 'alert' }, 'That was not the token.'),
      input('Token', { name: 'token', type: 'password', required: true, autoComplete: 'off', autoFocus: true }),
      h('div.row.actions', null, submit('Continue')),
    ),
  );
}

// IssuedDialog is the only place that shows a key, and only once: the fake
// keeps it, the page does not.
function IssuedDialog({ label, plan, secret }) {
  return h(
    Dialog,
    { title: 'The new key' },
    h('p', null, 'Copy it now: it is not shown again. The page calls it ', mono(label), `, plan ${plan}.`),
    code('API key', secret),
    code('Environment', exportLines(secret)),
    h('div.row.actions', null, button('Done', closeDialog, { kind: 'primary' })),
  );
}
