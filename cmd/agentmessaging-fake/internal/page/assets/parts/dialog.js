// A modal dialog. The browser's own keeps the focus inside, closes with Escape
// and gives the focus back.
import { h, Component } from '../dom.js';
import { change } from '../store.js';
import { button } from './widgets.js';

export function closeDialog() {
  change({ dialog: null });
}

export class Dialog extends Component {
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
export function Confirm({ title, words, label, run }) {
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
