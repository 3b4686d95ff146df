// Server-sent events over fetch, since EventSource cannot send the token's
// header; and one stream for all tabs of a browser that show the same fake: a
// browser opens six connections to a host at most, and a stream keeps one.
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

// The name of the lock and of the channel. Both are shared by the tabs of one address,
// and so of one fake.
const name = 'agentmessaging-fake';
// How long a tab waits until it connects again, in ms.
const retryAfter = 1000;
// The fake sends a heartbeat every 3 s. After a longer silence, in ms, the connection is
// dead, whatever the browser thinks of it.
const silence = 8000;

// follow hands over the events of the stream until the signal aborts, and between them
// {event: 'link', data}: connecting, live or waiting. The tab that holds the lock keeps the
// stream, and sends each event on to the others, which wait to take its place. Where there
// are no locks, over plain http from another machine, each tab has its own stream.
export async function follow(signal, onEvent) {
  const channel = navigator.locks && new BroadcastChannel(name);
  let link = null; // the last event of the link that this tab sent; null while another leads
  const send = (event) => {
    if (event.event === 'link') link = event;
    onEvent(event);
    channel?.postMessage(event);
  };
  // Without locks the tabs cannot choose one of them, so each leads.
  if (!channel) return lead(send, signal);
  channel.onmessage = ({ data }) => {
    if (data.event !== 'ask') onEvent(data);
    else if (link) channel.postMessage(link);
  };
  // A hidden tab leaves the channel as well.
  signal.addEventListener('abort', () => channel.close());
  channel.postMessage({ event: 'ask' }); // a tab that is new does not know the link
  return navigator.locks.request(name, { signal }, () => lead(send, signal));
}

// lead keeps the stream open, and opens it again when it ends. Without the token it ends
// until the user has given it.
async function lead(send, signal) {
  const sendLink = (data) => send({ event: 'link', data });
  while (!signal.aborted) {
    sendLink('connecting');
    const err = await listen(signal, send, () => sendLink('live')).catch((err) => err);
    if (signal.aborted || err?.status === 401) return;
    sendLink('waiting');
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
