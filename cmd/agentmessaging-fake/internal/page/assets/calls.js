// The calls that the page holds: the newest 10,000 of the world, in the order
// of arrival, and those of them that pass the filter. The fake may have kept
// more; they are fetched page by page.

const maxCalls = 10_000;
// A body may have 64 KiB; this is what all of them together may take.
const maxCharacters = 64 << 20;

export class CallLog {
  calls = []; // oldest first
  older = []; // from before calls: what was fetched for this filter
  shown = []; // older, and of calls what passes the filter
  passed = 0; // how many calls have ever been appended to shown
  generation = 0; // changes when shown is made anew
  #beyond = false; // the fake may have calls from before calls
  #fetched = false; // all of them that pass the filter are in older
  #characters = 0;
  #test = () => true;

  // add takes a call that arrived; one that is there already is left out, since
  // a stream that resumes may repeat it.
  add(call) {
    if (call.seq <= this.lastSeq) return false;
    this.calls.push(call);
    this.#characters += sizeOf(call);
    if (this.#test(call)) {
      this.shown.push(call);
      this.passed++;
    }
    this.#dropOldest();
    return true;
  }

  // Who reads older calls keeps those that go.
  #dropOldest() {
    while (this.calls.length > maxCalls || this.#characters > maxCharacters) {
      const gone = this.calls.shift();
      this.#characters -= sizeOf(gone);
      this.#beyond = true;
      if (this.shown[this.older.length] !== gone) continue;
      if (this.older.length) this.older.push(gone);
      else this.shown.shift();
    }
  }

  // replace takes all calls anew, after a reset or where some may be missing;
  // kept is how many the fake has.
  replace(calls, kept) {
    this.calls = calls;
    this.#beyond = kept > calls.length;
    this.#characters = calls.reduce((sum, call) => sum + sizeOf(call), 0);
    this.#dropOldest();
    this.#make();
  }

  setFilter(filter) {
    this.#test = filterTest(filter);
    this.#make();
  }

  #make() {
    this.older = [];
    this.#fetched = false;
    this.shown = this.calls.filter(this.#test);
    this.passed = this.shown.length;
    this.generation++;
  }

  // hasOlder reports whether addOlder may find more.
  get hasOlder() {
    return this.#beyond && !this.#fetched;
  }

  // firstSeq is the seq that calls to be fetched are below.
  get firstSeq() {
    return this.older[0]?.seq ?? this.calls[0]?.seq ?? 1;
  }

  // addOlder takes the newest calls below firstSeq that pass the filter; total
  // is how many there are.
  addOlder(calls, total) {
    this.older = [...calls, ...this.older];
    this.shown = [...calls, ...this.shown];
    this.#fetched = total <= calls.length;
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
  return 1000 + (call.body?.length ?? 0) + (call.sent.body?.length ?? 0) + (call.reply_body?.length ?? 0);
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
};

function filterTest({ text, endpoint, status }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const statusFits = statusTests[status] ?? (() => true);
  return (call) =>
    (!endpoint || call.endpoint === endpoint) && (status === 'none' ? !call.sent.status || call.sent.broke : statusFits(call.sent.status) || statusFits(call.status)) && words.every((word) => holds(call, word));
}

const searched = ['path', 'method', 'key', 'trace_id', 'code', 'reason', 'limit_key', 'fault'];

function holds(call, word) {
  return (
    searched.some((name) => String(call[name] ?? '').toLowerCase().includes(word)) ||
    `${call.sent.status} ${call.status}`.includes(word) ||
    legible(call).includes(word)
  );
}

const legibles = new WeakMap();

// legible is what a person reads in the bodies of a call, in lower case: the
// texts as they are, without the escapes of JSON.
function legible(call) {
  if (!legibles.has(call)) legibles.set(call, [call.body, call.sent.body, call.reply_body].map(textsOf).join('\n').toLowerCase());
  return legibles.get(call);
}

function textsOf(body = '') {
  try {
    const texts = [];
    JSON.parse(body, (name, value) => void texts.push(name, typeof value === 'object' ? '' : String(value)));
    return `${texts.join('\n')}\n${body}`;
  } catch {
    return body;
  }
}
