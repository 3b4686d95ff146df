// The calls that the page holds, in windows. A window is {calls, total}: the newest calls,
// oldest first, and how many such calls the fake has. The list shows the window of all calls,
// or with a filter the window of the calls that pass it. While somebody reads the list, it is
// frozen and does not change.

// Few enough for a first view within a second when each call has two bodies of 4 KB.
export const windowSize = 100;

// The window before anything was loaded.
const nothing = { calls: [], total: 0 };

// extended returns a window with further calls at its end. It drops the oldest calls beyond
// windowSize, which still count in total.
function extended(window, more) {
  return { calls: [...window.calls, ...more.calls].slice(-windowSize), total: window.total + more.total };
}

// CallLog holds the windows, and decides which of them the list shows. sync.js makes the
// requests.
export class CallLog {
  // The three windows. found and frozen are null if the list does not need them.
  all = nothing; // whatever the filter
  found = null; // what passes the filter; null without one
  searching = false; // whether the fake looks for calls that pass a new filter
  frozen = null; // what the list shows while somebody reads it
  listNumber = 1; // a new filter or a reset begins another list

  // newest is the window that the list shows unless it is frozen.
  get newest() {
    return this.found ?? this.all;
  }

  // shown is the window that the list shows.
  get shown() {
    return this.frozen ?? this.newest;
  }

  // unseen is how many calls have come since the list was frozen.
  get unseen() {
    return this.newest.total - this.shown.total;
  }

  // lastSeq is the number of the newest call that was added.
  get lastSeq() {
    return this.all.calls.at(-1)?.seq ?? 0;
  }

  // get finds a call by its number, undefined where the page no longer holds it.
  get(seq) {
    return [...this.all.calls, ...this.shown.calls].find((call) => call.seq === seq);
  }

  // add adds a new call, and reports whether it was new: a stream that resumes may repeat
  // calls.
  add(call) {
    if (call.seq <= this.lastSeq) return false;
    this.all = extended(this.all, { calls: [call], total: 1 });
    return true;
  }

  // replace replaces all calls, after a reset or if some may be missing.
  replace({ calls, total }) {
    this.all = { calls, total };
    this.beginList(Boolean(this.found));
  }

  // beginList starts a new list. With a filter it is empty until addFound.
  beginList(filtered) {
    Object.assign(this, { found: filtered ? nothing : null, searching: filtered, frozen: null });
    this.listNumber++;
  }

  // addFound adds the next window of calls that pass the filter.
  addFound(more) {
    this.found = extended(this.found, more);
    this.searching = false;
  }

  // addOlder adds the window of calls before the shown calls. It freezes the list, so that
  // new calls do not push the older ones out.
  addOlder({ calls, total }) {
    this.frozen = { calls: [...calls, ...this.shown.calls], total: total + this.shown.calls.length };
  }

  // freeze freezes the list, or lets it show the newest calls again.
  freeze(reading) {
    this.frozen = reading ? this.shown : null;
  }

  // update replaces a call whose answer has ended since it was added.
  update(call) {
    const updated = (window) => window && { ...window, calls: window.calls.map((c) => (c.seq === call.seq ? call : c)) };
    for (const name of ['all', 'found', 'frozen']) this[name] = updated(this[name]);
  }
}
