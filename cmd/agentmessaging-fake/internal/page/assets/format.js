// Numbers and times as people read them. Nothing here reads the state or the clock, so
// each function can be tried by itself. The units are in seconds.
const units = [
  [86400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

// span is a length of time in its largest unit, or its two largest: "1 d 2 h".
export function span(seconds, parts = 1) {
  let left = Math.max(0, Math.round(seconds));
  const words = [];
  for (const [size, unit] of units) {
    const n = Math.floor(left / size);
    left -= n * size;
    if (n > 0) words.push(`${n} ${unit}`);
    if (words.length === parts) break;
  }
  return words.join(' ') || '0 s';
}

// secondsOf reads a duration as Go writes it: 250ms, 90s, 1h30m0s.
export function secondsOf(duration) {
  // The units of Go's durations, in seconds.
  const sizes = { h: 3600, m: 60, s: 1, ms: 1e-3, 'µs': 1e-6, us: 1e-6, ns: 1e-9 };
  return [...duration.matchAll(/([\d.]+)(ms|µs|us|ns|h|m|s)/g)].reduce((sum, [, n, unit]) => sum + n * sizes[unit], 0);
}

// relative is a time as seen from now, both in ms.
export function relative(at, now) {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 1) return 'now';
  // Rounded up, so that nothing is said to open before it does.
  return seconds > 0 ? `in ${span(Math.ceil(seconds), 2)}` : `${span(-seconds)} ago`;
}

// exact is a time of day with its date, in the reader's zone. Swedish writes
// both as ISO 8601 does.
export function exact(at) {
  return new Date(at).toLocaleString('sv');
}

// timeOfDay is the time without its date, in the reader's zone.
export function timeOfDay(at) {
  return new Date(at).toLocaleTimeString('sv');
}

// took is a short length of time, in seconds: "54 µs", "41 ms", "2.4 s", "1 min 5 s".
// A number is not parted from its unit.
export function took(seconds) {
  if (seconds < 1e-3) return `${Math.floor(seconds * 1e6)}\u00a0µs`;
  if (seconds < 1) return `${Math.round(seconds * 1e3)}\u00a0ms`;
  return seconds < 60 ? `${seconds.toFixed(1)}\u00a0s` : span(seconds, 2);
}

// gap is the time from one call to the next, such as "+41.2 s"; '' where it is
// below a millisecond or the clock was moved back.
export function gap(from, to) {
  const ms = Date.parse(to) - Date.parse(from);
  return ms >= 1 ? `+${took(ms / 1000)}` : '';
}

// count is a number with commas, whatever the language of the browser: the page is
// English.
export function count(n) {
  return n.toLocaleString('en');
}

// plural is a number and a word, which gets an s but for one.
export function plural(n, word) {
  return `${count(n)} ${word}${n === 1 ? '' : 's'}`;
}

// indentJSON lays a JSON document out over lines, with its numbers as they are. What is
// not JSON, or would not come back the same, as with a member that appears twice, stays.
export function indentJSON(source) {
  // Compared without spaces, the outcome must be the source: JSON.parse drops a member
  // that appears twice.
  const bare = (json) => json.replace(/\s/g, '');
  try {
    const value = JSON.parse(source, (_, v, context) => (typeof v === 'number' ? JSON.rawJSON(context.source) : v));
    return bare(JSON.stringify(value)) === bare(source) ? JSON.stringify(value, null, 2) : source;
  } catch {
    return source;
  }
}

// withoutUser hides the user and the password that an address may have.
export const withoutUser = (address) => address.replace(/(^|\/\/)[^/?#]*@/, '$1[redacted]@');
