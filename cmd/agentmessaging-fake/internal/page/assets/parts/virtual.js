// A list of any length that has as many elements as fit on the screen.
import { h, Component } from '../dom.js';

const spare = 6; // rows kept above and below what is seen

// VirtualList draws rows of one height, the newest first. props:
//   length, keyAt(i), row(i, cursor)   what to draw
//   generation                         of CallLog
//   rowHeight                          in pixels
//   cursor                             index of the row under the cursor
//   onMove(i), onOpen(i)               what the keyboard and the mouse do
//   onRead(is)                         somebody reads the list, or has left it
export class VirtualList extends Component {
  state = { top: 0, height: 600 };

  take = (element) => {
    this.element = element;
  };

  componentDidMount() {
    this.observer = new ResizeObserver(([entry]) => this.setState({ height: entry.contentRect.height }));
    this.observer.observe(this.element);
    this.read();
  }

  componentWillUnmount() {
    this.observer.disconnect();
  }

  componentDidUpdate(before) {
    if (before.generation !== this.props.generation) this.element.scrollTop = 0;
    else if (before.cursor !== this.props.cursor && this.moved) this.#reveal();
    this.moved = false;
  }

  #reveal() {
    const top = this.props.cursor * this.props.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.props.rowHeight > scrollTop + clientHeight) this.element.scrollTop = top + this.props.rowHeight - clientHeight;
  }

  scroll = () => {
    this.setState({ top: this.element.scrollTop });
    this.read();
  };

  read = () => {
    const { element, props } = this;
    if (element) props.onRead(element.matches(':hover') || element.scrollTop > 0);
  };

  key = (event) => {
    const { length, cursor, onMove, onOpen } = this.props;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      return onOpen(cursor);
    }
    const page = Math.max(1, Math.floor(this.state.height / this.props.rowHeight) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -length, End: length }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.moved = true;
    onMove(Math.min(length - 1, Math.max(0, cursor + step)));
  };

  render({ length, cursor, label, keyAt, row, rowHeight: size, onOpen }, { top, height }) {
    const first = Math.max(0, Math.floor(top / size) - spare);
    const last = Math.min(length, Math.ceil((top + height) / size) + spare);
    const seen = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    const active = cursor >= first && cursor < last ? `row-${keyAt(cursor)}` : undefined;
    return h(
      'div.vlist',
      {
        ref: this.take,
        role: 'listbox',
        tabIndex: 0,
        'aria-label': label,
        'aria-activedescendant': active,
        onScroll: this.scroll,
        onKeyDown: this.key,
        onPointerEnter: this.read,
        onPointerLeave: this.read,
      },
      h(
        'div.vspace',
        { role: 'presentation', style: { height: `${length * size}px` } },
        seen.map((i) =>
          h(
            'div.vrow',
            {
              key: keyAt(i),
              id: `row-${keyAt(i)}`,
              role: 'option',
              'aria-selected': i === cursor ? 'true' : 'false',
              'aria-setsize': length,
              'aria-posinset': i + 1,
              style: { transform: `translateY(${i * size}px)`, height: `${size}px` },
              onClick: () => onOpen(i),
            },
            row(i),
          ),
        ),
      ),
    );
  }
}
