// The calls that the page holds, in windows. A window is {calls, total}: the newest calls,
// oldest first, and how many of that kind the fake has. The list shows the window of all
// calls, or with a filter the window of those that pass it. While somebody reads the list it
// is frozen: it shows what it showed then.

// Few enough for a first view within a second when each call has two bodies of 4 KB.
export const windowSize = 100;

// The window before anything was loaded.
const nothing = { calls: [], total: 0 };

// extended is a window with further calls at its end. Those that no longer fit go, and
// still count.
function extended(window, more) {
  return { calls: [...window.calls, ...more.calls].slice(-windowSize), total: window.total + more.total };
}

// CallLog holds the windows and knows which one the list shows. It makes no requests:
// sync.js does.
export class CallLog {
  // The three windows. found and frozen are null where the list does not need them.
  all = nothing; // whatever the filter
  found = null; // what passes the filter; null without one
  searching = false; // whether the fake looks for calls that pass a new filter
  frozen = null; // what the list shows while somebody reads it
  listNumber = 1; // a new filter or a reset begins another list

  // newest is the window that the list follows while nobody reads it.
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

  // lastSeq is the number of the newest call of all; a call up to it was seen.
  get lastSeq() {
    return this.all.calls.at(-1)?.seq ?? 0;
  }

  // get finds a call by its number, undefined where the page no longer holds it.
  get(seq) {
    return [...this.all.calls, ...this.shown.calls].find((call) => call.seq === seq);
  }

  // add takes a call that arrived; one that is there already is left out, since
  // a stream that resumes may repeat it.
  add(call) {
    if (call.seq <= this.lastSeq) return false;
    this.all = extended(this.all, { calls: [call], total: 1 });
    return true;
  }

  // replace replaces all calls, after a reset or where some may be missing.
  replace({ calls, total }) {
    this.all = { calls, total };
    this.beginList(Boolean(this.found));
  }

  // beginList starts a new list. With a filter it is empty until addFound.
  beginList(filtered) {
    Object.assign(this, { found: filtered ? nothing : null, searching: filtered, frozen: null });
    this.listNumber++;
  }

  // addFound takes the window of calls after those found that pass the filter.
  addFound(more) {
    this.found = extended(this.found, more);
    this.searching = false;
  }

  // addOlder takes the window of calls before those shown. Further calls must not push
  // them out, so the list is frozen.
  addOlder({ calls, total }) {
    this.frozen = { calls: [...calls, ...this.shown.calls], total: total + this.shown.calls.length };
  }

  // freeze holds the list as it is, or lets it follow the newest calls again.
  freeze(reading) {
    this.frozen = reading ? this.shown : null;
  }

  // update replaces a call whose answer has been sent since.
  update(call) {
    const updated = (window) => window && { ...window, calls: window.calls.map((c) => (c.seq === call.seq ? call : c)) };
    for (const name of ['all', 'found', 'frozen']) this[name] = updated(this[name]);
  }
}
