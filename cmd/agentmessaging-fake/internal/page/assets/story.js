// Groups calls: the attempts of one call, and the story of an agent. It works for every
// client, because it compares what was sent: a call is another attempt if the one before
// with the same key, path and body brought no reply.
import { took } from './format.js';

// The one endpoint whose calls make a story.
const messages = 'POST /v1/agents/{agent_id}/messages';

// failed reports whether the sender of a call got no reply.
function failed(call) {
  return Boolean(call.sent.broke) || call.sent.status !== 200;
}

// attemptsOf maps each call to the list of attempts that it belongs to, oldest first.
export function attemptsOf(calls) {
  const newest = new Map(); // what is sent -> attempts
  const found = new Map();
  for (const call of calls) {
    const sent = `${call.key} ${call.method} ${call.path} ${call.body}`;
    // After a reply, the same request is a new call: the user wanted it twice.
    const before = newest.get(sent);
    const all = before && failed(before.at(-1)) ? before : [];
    all.push(call);
    newest.set(sent, all);
    found.set(call, all);
  }
  return found;
}

// whyOf explains a call: with the fake's sentence, and with what the client did after it.
// next is the attempt that came after the call.
export function whyOf(call, next) {
  return [call.why || call.reason, cameBack(call, next), left(call), unreadable(call)].filter(Boolean).join(' ');
}

// cameBack says how long the client waited where an answer asked it to wait longer.
function cameBack(call, next) {
  const asked = Number(call.sent.header?.['Retry-After']?.[0]);
  // A Retry-After that is a date, or none, has no number to compare with.
  if (!next || !(asked > 0)) return '';
  const waited = (Date.parse(next.time) - Date.parse(call.time)) / 1000;
  return waited < asked ? `The client came back after ${took(waited)}, although Retry-After said ${asked}.` : '';
}

// left says that the client did not wait for the end of an answer. If not even the status
// was sent, the fake's own sentence says so.
function left({ sent, took_ns: ns }) {
  if (sent.broke !== 'left' || !sent.status) return '';
  return `The client left after ${took(ns / 1e9)}, before it had the whole answer.`;
}

// unreadable says that a success reached the client as no JSON.
function unreadable({ sent }) {
  return sent.status === 200 && !sent.broke && !isJSON(sent) ? 'What arrived is not JSON.' : '';
}

// isJSON reports whether an answer is JSON, as every documented one is. One that was too
// long to be kept whole counts as JSON.
export function isJSON({ body, bytes }) {
  if (bytes > (body ?? '').length) return true;
  try {
    return typeof JSON.parse(body) === 'object';
  } catch {
    return false;
  }
}

// storyOf returns the exchanges with an agent, and the calls that led to no exchange, in
// the order of time, from a time on. A step is {exchange, call, attempt}. It may lack
// exchange or call. attempt counts the tries of one text.
export function storyOf(exchanges, calls, from) {
  const byTrace = new Map(calls.map((c) => [c.trace_id, c]));
  const steps = [
    ...exchanges.map((exchange) => ({ exchange, call: byTrace.get(exchange.trace_id), at: Date.parse(exchange.time) })),
    ...calls.filter((c) => c.status !== 200).map((call) => ({ call, at: Date.parse(call.time) })),
  ].filter(({ at }) => at >= from);
  steps.sort((a, b) => a.at - b.at || (a.call?.seq ?? 0) - (b.call?.seq ?? 0));
  // Only these calls count here, while the traffic may hold others.
  const attempts = attemptsOf(calls);
  for (const step of steps) step.attempt = step.call ? attempts.get(step.call).indexOf(step.call) + 1 : 1;
  return steps;
}

// More characters than a line of the widest screen has. A browser lays out what it cuts
// off too: 100 texts of 4,000 characters take it more than 100 ms.
const line = 600;

// textOf returns the beginning of a message's text; '' for any other call.
export function textOf(call) {
  if (call.endpoint !== messages) return '';
  try {
    const { text } = JSON.parse(call.body);
    return (typeof text === 'string' ? text : call.body).slice(0, line);
  } catch {
    return call.body?.slice(0, line);
  }
}
