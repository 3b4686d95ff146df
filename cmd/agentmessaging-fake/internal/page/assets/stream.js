// Server-sent events over fetch, since EventSource cannot send the token's
// header; and one stream for all tabs of a browser that show the same fake: a
// browser opens six connections to a host at most, and a stream keeps one.
import { controlPath, headers, failure } from './api.js';

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

const name = 'agentmessaging-fake';
const firstWait = 500;
const longestWait = 4000;
// The fake sends a heartbeat every 3 s. After a longer silence the connection is
// dead, whatever the browser thinks of it.
const silence = 8000;

// follow hands over events and the state of the connection until the signal aborts. The
// tab that holds the lock keeps the stream, and repeats it to the others, which wait to
// take its place. Where there are no locks, over plain http from another machine, each tab
// has its own stream.
export async function follow({ signal, onEvent, onLink }) {
  const channel = navigator.locks && new BroadcastChannel(name);
  let told = null; // the link as this tab told it; null while another leads
  const take = ({ event, link }) => (event ? onEvent(event) : onLink(link));
  const tell = (message) => {
    told = message.link ?? told;
    take(message);
    channel?.postMessage(message);
  };
  if (!channel) return lead(tell, signal);
  channel.onmessage = ({ data }) => {
    if (!data.ask) take(data);
    else if (told) channel.postMessage({ link: told });
  };
  signal.addEventListener('abort', () => channel.close());
  channel.postMessage({ ask: true });
  return navigator.locks.request(name, { signal }, () => lead(tell, signal));
}

// lead keeps the stream open, and opens it again when it ends. Without the token it ends
// until the user has given it.
async function lead(tell, signal) {
  let wait = firstWait;
  const opened = () => {
    wait = firstWait;
    tell({ link: 'live' });
  };
  for (;;) {
    tell({ link: 'connecting' });
    const err = await listen(signal, (event) => tell({ event }), opened).catch((err) => err);
    if (signal.aborted || err?.status === 401) return;
    tell({ link: 'waiting' });
    const over = AbortSignal.any([signal, AbortSignal.timeout(wait)]);
    await new Promise((resolve) => over.addEventListener('abort', resolve));
    if (signal.aborted) return;
    wait = Math.min(wait * 2, longestWait);
  }
}

async function listen(signal, onEvent, onOpen) {
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
