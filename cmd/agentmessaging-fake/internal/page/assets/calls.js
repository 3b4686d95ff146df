// The calls that the page holds: the newest 10,000 of the world, in the order
// of arrival, and those of them that pass the filter.

const maxCalls = 10_000;
// A body may have 16 KiB; this is what all of them together may take.
const maxCharacters = 64 << 20;

export class CallLog {
  calls = []; // oldest first
  shown = []; // of calls, what passes the filter
  passed = 0; // how many calls have ever been appended to shown
  generation = 0; // changes when shown is made anew
  #characters = 0;
  #test = () => true;

  // add takes a call that arrived; one that is there already is left out, since
  // a stream that resumes may repeat it.
  add(call) {
    if (call.seq <= (this.calls.at(-1)?.seq ?? 0)) return false;
    this.calls.push(call);
    this.#characters += sizeOf(call);
    if (this.#test(call)) {
      this.shown.push(call);
      this.passed++;
    }
    this.#dropOldest();
    return true;
  }

  #dropOldest() {
    while (this.calls.length > maxCalls || this.#characters > maxCharacters) {
      const gone = this.calls.shift();
      this.#characters -= sizeOf(gone);
      if (this.shown[0] === gone) this.shown.shift();
    }
  }

  // replace takes all calls anew, after a reset or where some may be missing.
  replace(calls) {
    this.calls = calls;
    this.#characters = calls.reduce((sum, call) => sum + sizeOf(call), 0);
    this.#dropOldest();
    this.#make();
    this.generation++;
  }

  setFilter(filter) {
    this.#test = filterTest(filter);
    this.#make();
    this.generation++;
  }

  #make() {
    this.shown = this.calls.filter(this.#test);
    this.passed = this.shown.length;
  }

  get(seq) {
    const i = indexOf(this.calls, seq);
    return i < 0 ? undefined : this.calls[i];
  }

  get lastSeq() {
    return this.calls.at(-1)?.seq ?? 0;
  }
}

// sizeOf leaves out the header and what else is small.
function sizeOf(call) {
  return 1000 + (call.body?.length ?? 0) + (call.reply_body?.length ?? 0);
}

// indexOf finds a call by its seq, -1 when it is not there.
export function indexOf(calls, seq) {
  let low = 0;
  let high = calls.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls[middle].seq < seq) low = middle + 1;
    else high = middle;
  }
  return calls[low]?.seq === seq ? low : -1;
}

// statusTests are the choices of the filter for the status.
export const statusTests = {
  '2xx': (status) => status >= 200 && status < 300,
  '4xx': (status) => status >= 400 && status < 500,
  429: (status) => status === 429,
  '5xx': (status) => status >= 500,
  none: (status) => !status,
};

function filterTest({ text, endpoint, status }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const statusFits = statusTests[status] ?? (() => true);
  return (call) =>
    (!endpoint || call.endpoint === endpoint) && statusFits(call.status) && words.every((word) => holds(call, word));
}

const searched = ['path', 'method', 'status', 'key', 'trace_id', 'code', 'reason', 'limit_key', 'fault', 'body', 'reply_body'];

function holds(call, word) {
  return searched.some((name) => String(call[name] ?? '').toLowerCase().includes(word));
}
