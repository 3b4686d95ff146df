// The calls that the page holds: a window of the newest, oldest first, out of all that
// the fake keeps. The list shows these, or what the fake finds for a filter. While
// somebody reads the list, or has paused it, it is held: further calls are counted and
// wait.

// Few enough for a first view within a second when each call has two bodies of 4 KB.
export const windowSize = 100;

export class CallLog {
  calls = []; // the newest, whatever the filter
  shown = []; // the rows of the list
  kept = 0; // how many calls the fake has
  total = 0; // how many of them pass the filter
  fresh = 0; // how many of these wait, since the list is held
  filtered = false;
  loaded = true; // false while the fake looks for calls that pass a new filter
  reading = false;
  paused = false;
  generation = 0; // changes when the list is made anew

  get held() {
    return this.reading || this.paused;
  }

  // add takes a call that arrived; one that is there already is left out, since
  // a stream that resumes may repeat it.
  add(call) {
    if (call.seq <= this.lastSeq) return false;
    this.calls = [...this.calls, call].slice(-windowSize);
    this.kept++;
    if (this.filtered) return true;
    this.total++;
    if (this.held) this.fresh++;
    else this.shown = this.calls;
    return true;
  }

  // replace takes all calls anew, after a reset or where some may be missing;
  // kept is how many the fake has. A paused list stays as it is if the calls continue
  // those from before.
  replace(calls, kept, continues = false) {
    this.calls = calls;
    this.kept = kept;
    if (!this.paused || !continues) return this.setFilter(this.filtered);
    if (this.filtered) return undefined;
    this.fresh = this.lastSeq - (this.shown.at(-1)?.seq ?? 0);
    this.total = kept;
  }

  // setFilter makes the list anew: empty until addFound where there is a filter.
  setFilter(filtered) {
    this.filtered = filtered;
    this.loaded = !filtered;
    this.shown = filtered ? [] : this.calls;
    this.total = filtered ? 0 : this.kept;
    this.fresh = 0;
    this.reading = false;
    this.generation++;
  }

  // addFound takes the newest calls after those shown that pass the filter;
  // total is how many came.
  addFound(calls, total) {
    if (this.held && this.loaded) {
      this.total += total - this.fresh;
      this.fresh = total;
      return;
    }
    this.total += total - this.fresh;
    this.fresh = 0;
    this.loaded = true;
    this.shown = total > calls.length ? calls : [...this.shown, ...calls];
  }

  // addOlder takes calls from before those shown; total is how many there are.
  addOlder(calls, total) {
    this.total = total + this.shown.length + this.fresh;
    this.shown = [...calls, ...this.shown];
  }

  get hasOlder() {
    return this.shown.length + this.fresh < this.total;
  }

  // hold sets a reason to hold the list: reading or paused. Without one the list goes
  // on with what has waited; with a filter the fake is asked for that.
  hold(why, is) {
    this[why] = is;
    if (this.held || this.filtered) return;
    this.fresh = 0;
    this.shown = this.calls;
  }

  // update takes a call anew whose answer is out by now.
  update(call) {
    const taken = (calls) => calls.map((c) => (c.seq === call.seq ? call : c));
    const same = this.shown === this.calls;
    this.calls = taken(this.calls);
    this.shown = same ? this.calls : taken(this.shown);
  }

  get(seq) {
    return [...this.calls, ...this.shown].find((call) => call.seq === seq);
  }

  get lastSeq() {
    return this.calls.at(-1)?.seq ?? 0;
  }
}
