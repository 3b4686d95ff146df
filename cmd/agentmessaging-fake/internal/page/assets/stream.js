// Server-sent events over fetch, since EventSource cannot send the token's
// header; and one stream for all tabs of a browser that show the same fake: a
// browser opens six connections to a host at most, and a stream keeps one.
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
const longestWait = 4000;
// The fake sends a heartbeat every 3 s. After a longer silence the connection is
// dead, whatever the browser thinks of it.
const silence = 8000;

// follow keeps a tab in step until the signal aborts. Tabs with the same name
// share a stream. load runs before the tab listens, and answers the path of the
// stream from there on; onEvent takes an event, onPhase the state of the
// connection. A tab that nobody sees asks for nothing.
export async function follow({ signal, ...tab }) {
  while (!signal.aborted) {
    const seen = await whileSeen(signal);
    if (seen.aborted) continue;
    if ((await takePart(tab, seen).catch(ignoreAbort(seen))) === refused) return;
  }
}

const refused = 'refused'; // without the token, until the user has given it

// The tab that holds the lock leads; the others listen to it and wait to take
// its place. Where there are no locks, over plain http from another machine,
// each tab leads itself.
async function takePart(tab, signal) {
  const room = new Room(tab, signal);
  const lead = () => leadRoom(room, signal);
  if (!navigator.locks) return lead();
  room.channel.postMessage({ ask: true });
  return navigator.locks.request(room.name, { signal }, lead);
}

// Room connects the tabs of a fake: the leader repeats its stream to the others,
// and tells a new tab the phase.
class Room {
  leads = false;
  #loaded = false; // the tab shows all from before the stream that is open
  #waiting = null; // events that came while the tab loads, in order
  #phase = ['connecting', 0];

  constructor(tab, signal) {
    Object.assign(this, tab);
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }) => this.#hear(data);
    signal.addEventListener('abort', () => this.channel.close());
  }

  // tell has all tabs take an event or a phase.
  tell(message) {
    if (message.phase) this.#phase = message.phase;
    this.#take(message);
    this.channel.postMessage(message);
  }

  #hear(message) {
    if (!message.ask) this.#take(message);
    else if (this.leads) this.channel.postMessage({ phase: this.#phase });
  }

  #take({ phase, event }) {
    if (event) return this.#waiting ? this.#waiting.push(event) : this.onEvent(event);
    this.onPhase(...phase);
    this.#loaded &&= phase[0] === 'live';
    if (phase[0] === 'live' && !this.#loaded && !this.leads && !this.#waiting) this.#refresh();
  }

  // refresh loads everything anew, and then takes what came meanwhile.
  async #refresh() {
    this.#waiting = [];
    do {
      this.#loaded = true;
      await this.load().catch(() => {}); // the leader meets what is wrong too, and tells
    } while (!this.#loaded);
    const missed = this.#waiting;
    this.#waiting = null;
    for (const event of missed) this.onEvent(event);
  }
}

// leadRoom keeps the stream open, and opens it again when it ends.
async function leadRoom(room, signal) {
  room.leads = true;
  let wait = firstWait;
  const opened = () => {
    wait = firstWait;
    room.tell({ phase: ['live', 0] });
  };
  while (!signal.aborted) {
    try {
      room.tell({ phase: ['connecting', 0] });
      await once(await room.load(), signal, (event) => room.tell({ event }), opened);
    } catch (err) {
      if (signal.aborted) return undefined;
      if (err instanceof Failure && err.status === 401) return refused;
    }
    room.tell({ phase: ['waiting', Date.now() + wait] });
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

function ignoreAbort(signal) {
  return (err) => {
    if (!signal.aborted) throw err;
  };
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
