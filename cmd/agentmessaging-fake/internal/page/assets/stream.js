// Server-sent events over fetch, since EventSource cannot send the token's header.
import { headers, failure, Failure } from './api.js';

// readEvents hands each event of a text/event-stream to onEvent as
// {event, data}, until the stream ends. onBytes is called for anything that
// arrives. The fake writes each field in one line; a comment is a heartbeat.
async function readEvents(body, onEvent, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onBytes();
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const found = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/)));
      if (found.data) onEvent(found);
    }
  }
}

const firstWait = 500;
const longestWait = 10_000;
// The fake sends a heartbeat every 15 s. After a longer silence the connection
// is dead, whatever the browser thinks of it.
const silence = 20_000;

// follow keeps the page in step until the signal aborts. load shows all from before
// the stream, and answers its path; onEvent takes an event, onPhase the state of
// the connection. A tab that nobody sees asks for nothing: a browser opens six
// connections to a host at most, and a stream keeps one.
export async function follow({ signal, ...page }) {
  while (!signal.aborted) {
    const seen = await whileSeen(signal);
    if ((await keepOpen(page, seen)) === refused) return;
  }
}

const refused = 'refused'; // without the token, until the user has given it

// keepOpen opens the stream again when it ends.
async function keepOpen({ load, onEvent, onPhase }, signal) {
  let wait = firstWait;
  const opened = () => {
    wait = firstWait;
    onPhase('live');
  };
  while (!signal.aborted) {
    try {
      onPhase('connecting');
      await once(await load(), signal, onEvent, opened);
    } catch (err) {
      if (signal.aborted) return undefined;
      if (err instanceof Failure && err.status === 401) return refused;
    }
    onPhase('waiting', Date.now() + wait);
    await pause(wait, signal);
    wait = Math.min(wait * 2, longestWait);
  }
  return undefined;
}

async function once(path, signal, onEvent, onOpen) {
  const quiet = new AbortController();
  let timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), silence);
  };
  heard();
  try {
    const resp = await fetch(path, {
      headers: headers({ Accept: 'text/event-stream' }),
      cache: 'no-store',
      signal: AbortSignal.any([signal, quiet.signal]),
    });
    if (!resp.ok) throw await failure(resp);
    onOpen();
    await readEvents(resp.body, onEvent, heard);
  } finally {
    clearTimeout(timer);
  }
}

// whileSeen waits until the tab is seen, and answers a signal that aborts when
// it is seen no more, or with the one given.
async function whileSeen(signal) {
  const hidden = new AbortController();
  const look = () => document.hidden && hidden.abort();
  while (document.hidden && !signal.aborted) await pause(longestWait, signal);
  document.addEventListener('visibilitychange', look, { signal: hidden.signal });
  return AbortSignal.any([signal, hidden.signal]);
}

// pause ends early when the network comes back or the page is looked at again.
function pause(ms, signal) {
  const over = new AbortController();
  return new Promise((resolve) => {
    const end = () => {
      over.abort();
      resolve();
    };
    setTimeout(end, ms);
    signal.addEventListener('abort', end, { signal: over.signal });
    window.addEventListener('online', end, { signal: over.signal });
    document.addEventListener('visibilitychange', end, { signal: over.signal });
  });
}
