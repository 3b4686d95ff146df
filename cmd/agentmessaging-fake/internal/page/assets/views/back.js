// The way back to the list, for narrow pages, which show one of the two.
import { h } from '../dom.js';
import { hrefOf } from '../route.js';
import { icon } from '../parts/icons.js';

export function back(page, label) {
  return h('a.back', { href: hrefOf(page) }, icon('back'), h('span', null, label));
}
