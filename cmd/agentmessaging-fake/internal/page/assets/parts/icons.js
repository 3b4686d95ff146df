// Line icons of 16 by 16, drawn in the colour of the text.
import { h } from '../dom.js';

const paths = {
  traffic: 'M2 4h9M8.5 1.5 11 4 8.5 6.5M14 12H5M7.5 9.5 5 12l2.5 2.5',
  keys: 'M10.5 9.5a4 4 0 1 0-3.9-3L2 11v3h3v-2h2v-2l.6-.6c.9.1 1.9.1 2.9.1zM11 5h.01',
  agents: 'M2.5 3.5h11v8H8l-3.5 3v-3h-2zM5.5 6.5h5M5.5 8.8h3',
  faults: 'M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1',
  replies: 'M2.5 3h11v3h-11zM2.5 6v7.5h11V6M6 9h4',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5 6.5 12 13 4.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  clock: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM8 4.5V8l2.5 1.6',
  reset: 'M13.5 8A5.5 5.5 0 1 1 11.6 3.8M13.5 1.5v3h-3',
  plus: 'M8 3v10M3 8h10',
  up: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
  back: 'M9.5 3 4.5 8l5 5',
  send: 'M2 8h11M8.5 3.5 13 8l-4.5 4.5',
};

// Beside words only, which say the same, so it is hidden from screen readers.
export function icon(name) {
  return h('svg.icon', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, h('path', { d: paths[name] }));
}

export function mark() {
  return h('img.mark', { src: '/_fake/assets/icon.svg', alt: '', width: 26, height: 26 });
}
