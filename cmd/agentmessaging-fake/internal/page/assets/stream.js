// Server-sent events over fetch: EventSource cannot send the token's header.
import { headers, failure, Failure } from './api.js';

// readEvents hands each event of a text/event-stream to onEvent as
// {event, data}, until the stream ends.
export async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) emit(block, onEvent);
  }
}

function emit(block, onEvent) {
  const found = { event: 'message', data: '' };
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^(\w+): ?([^]*)$/.exec(line) ?? [];
    if (name === 'data') found.data += (found.data && '\n') + value;
    else if (name === 'event') found.event = value;
  }
  if (found.data) onEvent(found); // a comment is a heartbeat
}

const firstWait = 500;
const longestWait = 10_000;

// follow keeps a stream open until the signal aborts, and opens it again when
// it ends. prepare runs before each opening and answers the path to open;
// onPhase hears where the connection stands.
export async function follow({ prepare, onEvent, onPhase, signal }) {
  let wait = firstWait;
  while (!signal.aborted) {
    try {
      onPhase('connecting');
      await once(await prepare(), signal, onEvent, () => {
        wait = firstWait;
        onPhase('live');
      });
    } catch (err) {
      if (signal.aborted || (err instanceof Failure && err.status === 401)) return;
    }
    onPhase('waiting', Date.now() + wait);
    await pause(wait, signal);
    wait = Math.min(wait * 2, longestWait);
  }
}

async function once(path, signal, onEvent, onOpen) {
  const resp = await fetch(path, {
    headers: headers({ Accept: 'text/event-stream' }),
    cache: 'no-store',
    signal,
  });
  if (!resp.ok) throw await failure(resp);
  onOpen();
  await readEvents(resp.body, onEvent);
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
