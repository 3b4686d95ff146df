// The calls that the page holds: a window of the newest, oldest first, out of all that
// the fake keeps, and for a filter a window of those that pass it. The list shows the one
// or the other as they come. While somebody reads the list, or has paused it, it is held:
// it shows what it showed then.

// Few enough for a first view within a second when each call has two bodies of 4 KB.
export const windowSize = 100;

export class CallLog {
  calls = []; // the newest, whatever the filter
  kept = 0; // how many calls the fake has
  found = null; // the newest that pass the filter; null without one
  foundTotal = 0; // how many there are
  loaded = true; // false while the fake looks for calls that pass a new filter
  held = null; // what a held list shows: {shown, total}
  reading = false;
  paused = false;
  generation = 0; // changes when the list is made anew

  get live() {
    return this.found ? { shown: this.found, total: this.foundTotal } : { shown: this.calls, total: this.kept };
  }

  get shown() {
    return (this.held ?? this.live).shown;
  }

  // fresh is how many calls wait, since the list is held.
  get fresh() {
    return this.held ? this.live.total - this.held.total : 0;
  }

  get hasOlder() {
    const { shown, total } = this.held ?? this.live;
    return shown.length < total;
  }

  get lastSeq() {
    return this.calls.at(-1)?.seq ?? 0;
  }

  get(seq) {
    return [...this.calls, ...this.shown].find((call) => call.seq === seq);
  }

  // add takes a call that arrived; one that is there already is left out, since
  // a stream that resumes may repeat it.
  add(call) {
    if (call.seq <= this.lastSeq) return false;
    this.calls = [...this.calls, call].slice(-windowSize);
    this.kept++;
    return true;
  }

  // replace takes all calls anew, after a reset or where some may be missing;
  // kept is how many the fake has. A paused list stays as it is if the calls continue
  // those from before.
  replace(calls, kept, continues = false) {
    Object.assign(this, { calls, kept });
    if (!this.paused || !continues) this.setFilter(Boolean(this.found));
  }

  // setFilter makes the list anew: empty until addFound where there is a filter.
  setFilter(filtered) {
    Object.assign(this, { found: filtered ? [] : null, foundTotal: 0, loaded: !filtered, held: null, reading: false });
    this.generation++;
    if (!filtered) this.hold('paused', this.paused);
  }

  // addFound takes the newest calls after those found that pass the filter;
  // total is how many came.
  addFound(calls, total) {
    this.found = [...this.found, ...calls].slice(-windowSize);
    this.foundTotal += total;
    this.loaded = true;
    this.hold('paused', this.paused);
  }

  // addOlder takes calls from before those shown; total is how many there are. Further
  // calls must not push them out, so somebody reads them.
  addOlder(calls, total) {
    this.held = { shown: [...calls, ...this.shown], total: total + this.shown.length };
    this.reading = true;
  }

  // hold sets a reason to hold the list: reading or paused. Without one the list goes on.
  hold(why, is) {
    this[why] = is;
    this.held = this.reading || this.paused ? (this.held ?? this.live) : null;
  }

  // update takes a call anew whose answer is out by now.
  update(call) {
    const taken = (calls) => calls?.map((c) => (c.seq === call.seq ? call : c));
    this.calls = taken(this.calls);
    this.found = taken(this.found) ?? null;
    if (this.held) this.held.shown = taken(this.held.shown);
  }
}
