// The one place that knows the view library.
import { h as create, render, Component } from './vendor/preact.js';

export { render, Component };

// h makes an element: h('div.card', { id: 'a' }, child, ...), without properties
// h('div.card', child, ...). Children that are strings become text nodes and nothing
// else. That keeps hostile content harmless: no module of this page sets markup from a
// string.
export function h(tag, ...rest) {
  const [props, ...children] = rest[0]?.constructor === Object ? rest : [null, ...rest];
  // A component, or a name without classes, needs nothing more.
  if (typeof tag !== 'string' || !tag.includes('.')) return create(tag, props, ...children);
  const [name, ...classes] = tag.split('.');
  const own = props?.class ? ` ${props.class}` : '';
  return create(name, { ...props, class: classes.join(' ') + own }, ...children);
}
