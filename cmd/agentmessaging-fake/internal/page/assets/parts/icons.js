// Line icons of 16 by 16, drawn in the colour of the text.
import { h } from '../dom.js';

const paths = {
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5 6.5 12 13 4.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  up: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
  back: 'M9.5 3 4.5 8l5 5',
  failed: 'M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1',
};

// The words next to an icon say the same, so it is hidden from screen readers.
export function icon(name) {
  return h('svg.icon', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, h('path', { d: paths[name] }));
}
