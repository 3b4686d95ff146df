// The calls that the page holds: the newest 1,000, oldest first, out of all that the
// fake keeps.
// Without a filter it shows these, and older ones once they were fetched. With a
// filter it shows the calls that the fake finds.

export const maxCalls = 1000;

export class CallLog {
  calls = []; // oldest first
  shown = this.calls;
  kept = 0; // how many calls the fake has, and had when it dropped some since
  total = 0; // with a filter: how many calls pass it
  generation = 0; // changes when shown is made anew
  filtered = false;
  loaded = true; // false while the fake looks for calls that pass a new filter
  hasOlder = false; // the fake may have older calls than the first that is shown
  #beyond = false; // it has calls from before calls

  // add takes a call that arrived; one that is there already is left out, since
  // a stream that resumes may repeat it.
  add(call) {
    if (call.seq <= this.lastSeq) return false;
    this.calls.push(call);
    this.kept++;
    if (!this.filtered && this.shown !== this.calls) this.shown.push(call);
    if (this.calls.length > maxCalls) this.#dropOldest();
    return true;
  }

  #dropOldest() {
    this.calls.shift();
    this.#beyond = true;
    if (this.shown === this.calls) this.hasOlder = true;
  }

  // replace takes all calls anew, after a reset or where some may be missing;
  // kept is how many the fake has.
  replace(calls, kept) {
    this.calls = calls;
    this.kept = kept;
    this.#beyond = kept > calls.length;
    this.setFilter(this.filtered);
  }

  // setFilter makes shown anew: empty until addFound where there is a filter.
  setFilter(filtered) {
    this.filtered = filtered;
    this.loaded = !filtered;
    this.shown = filtered ? [] : this.calls;
    this.hasOlder = !filtered && this.#beyond;
    this.total = 0;
    this.generation++;
  }

  // addFound takes the newest calls behind those shown that pass the filter;
  // total is how many there are.
  addFound(calls, total) {
    if (!this.loaded) this.hasOlder = total > calls.length;
    this.loaded = true;
    this.total += total;
    this.shown.push(...calls);
  }

  // addOlder takes calls from before those shown; total is how many there are.
  addOlder(calls, total) {
    this.shown = [...calls, ...this.shown];
    this.hasOlder = total > calls.length;
  }

  // update takes a call anew whose answer is out by now.
  update(call) {
    for (const calls of new Set([this.calls, this.shown])) {
      const i = indexOf(calls, call.seq);
      if (i >= 0) calls[i] = call;
    }
  }

  get(seq) {
    return [this.calls, this.shown].map((calls) => calls[indexOf(calls, seq)]).find(Boolean);
  }

  get lastSeq() {
    return this.calls.at(-1)?.seq ?? 0;
  }
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
