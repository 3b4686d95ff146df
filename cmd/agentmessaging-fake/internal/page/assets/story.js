// What belongs together: the attempts of one message, and the story of an
// agent. The fake goes by what was sent, so it works for every client: the same
// body once more from the same key to the same address, after a try that
// brought no reply, is another attempt.

const messages = 'POST /v1/agents/{agent_id}/messages';

// failed reports a call whose sender has no reply in hand.
function failed(call) {
  return Boolean(call.sent.broke) || call.sent.status !== 200;
}

// attemptsOf are the attempts that a call is one of, oldest first.
export function attemptsOf(call, calls) {
  return attempts(calls.filter((c) => c.path === call.path && c.method === call.method && c.key === call.key)).get(call) ?? [];
}

// attempts finds those that each call is one of, among calls to one address.
function attempts(calls) {
  const newest = new Map(); // by body
  const found = new Map();
  for (const call of calls) {
    const before = newest.get(call.body) ?? [];
    const all = before.length && failed(before.at(-1)) ? before : [];
    all.push(call);
    newest.set(call.body, all);
    found.set(call, all);
  }
  return found;
}

// storyOf puts the exchanges with an agent and the calls that led to none into
// one column, from a time on. A step is {exchange, call, attempt}: either may be
// missing, and attempt counts the tries of one text.
export function storyOf(agentID, exchanges, calls, from) {
  const made = calls.filter((c) => c.agent_id === agentID && c.endpoint === messages);
  const byTrace = new Map(made.map((c) => [c.trace_id, c]));
  const steps = [
    ...exchanges.map((exchange) => ({ exchange, call: byTrace.get(exchange.trace_id), at: Date.parse(exchange.time) })),
    ...made.filter((c) => c.status !== 200).map((call) => ({ call, at: Date.parse(call.time) })),
  ].filter(({ at }) => at >= from);
  steps.sort((a, b) => a.at - b.at || (a.call?.seq ?? 0) - (b.call?.seq ?? 0));
  const tries = attempts(made);
  for (const step of steps) step.attempt = step.call ? tries.get(step.call).indexOf(step.call) + 1 : 1;
  return steps;
}

const saids = new WeakMap();

// said is the text of a message; of other calls there is none.
export function said(call) {
  if (call.endpoint !== messages) return '';
  if (!saids.has(call)) saids.set(call, wordsOf(call.body));
  return saids.get(call);
}

function wordsOf(body) {
  try {
    const { text } = JSON.parse(body);
    return typeof text === 'string' ? text : body;
  } catch {
    return body;
  }
}
