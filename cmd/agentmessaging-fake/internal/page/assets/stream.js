// Server-sent events over fetch, since EventSource cannot send the token's header.
import { controlPath, headers, failure } from './api.js';

// readEvents hands each event of a text/event-stream to onEvent as
// {event, data}, until the stream ends. onBytes is called for anything that
// arrives. The fake writes each field in one line; a comment is a heartbeat.
async function readEvents(body, onEvent, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  // A chunk may end inside an event, which then waits here for the next chunk.
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

// How long the page waits until it connects again, in ms.
const retryAfter = 1000;
// The fake sends a heartbeat every 3 s. After a longer silence, in ms, the connection is
// dead, whatever the browser thinks of it.
const silence = 8000;

// follow hands over the events of the stream until the signal aborts, and opens it again when
// it ends. onLink gets the state of the connection: connecting, live or waiting. Without the
// token follow ends, until the user has given it.
export async function follow(signal, onEvent, onLink) {
  while (!signal.aborted) {
    onLink('connecting');
    const err = await listen(signal, onEvent, () => onLink('live')).catch((err) => err);
    if (signal.aborted || err?.status === 401) return;
    onLink('waiting');
    await new Promise((resolve) => setTimeout(resolve, retryAfter));
  }
}

// listen reads one connection of the stream to its end. It throws where the connection
// breaks, stays silent for too long, or is refused.
async function listen(signal, onEvent, onOpen) {
  // A connection that breaks without a sign, as after a laptop has slept, is found by
  // silence.
  const quiet = new AbortController();
  let timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), silence);
  };
  heard();
  try {
    const resp = await fetch(controlPath('calls', 'stream'), {
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
