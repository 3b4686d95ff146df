// The program under test, as a process on a free port.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../.build/agentmessaging-fake', import.meta.url));

// startFake answers once the program serves.
export async function startFake(...args) {
  const fake = new Fake();
  await fake.start(...args);
  return fake;
}

class Fake {
  async start(...args) {
    const addr = this.base ? new URL(this.base).host : '127.0.0.1:0';
    this.process = spawn(program, ['--addr', addr, '--json', '--log=off', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH }, // the flags alone decide
    });
    const facts = JSON.parse(await firstLine(this.process));
    this.base = facts.base_url;
    this.key = facts.api_key;
    this.token = facts.token;
    this.page = `${this.base}/`;
  }

  async end(signal) {
    if (this.process.exitCode !== null || this.process.signalCode) return;
    this.process.kill(signal);
    await once(this.process, 'exit');
  }

  // call makes a call of the service, as an application would. A string is sent as it is.
  async call(method, path, body, { key = this.key, headers = {}, signal } = {}) {
    const resp = await fetch(this.base + path, {
      method,
      signal,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'object' ? JSON.stringify(body) : body,
    });
    return { status: resp.status, body: await resp.json().catch(() => undefined) };
  }

  // control makes a call of the control interface, which must succeed.
  async control(method, path, body) {
    const at = `/_fake/v1/${path}`;
    const headers = { 'Content-Type': 'application/json' };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const resp = await fetch(this.base + at, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    if (!resp.ok) throw new Error(`${method} ${at}: ${resp.status} ${await resp.text()}`);
    return resp.status === 204 ? undefined : resp.json();
  }

  // many makes n calls, of which 50 are under way at a time.
  async many(n) {
    for (let left = n; left > 0; left -= 50) {
      await Promise.all(Array.from({ length: Math.min(left, 50) }, () => this.call('GET', '/v1/status')));
    }
  }

  // agent makes an agent and says the texts to it.
  async agent(params = {}, ...texts) {
    const { body } = await this.call('POST', '/v1/agents', params);
    for (const text of texts) await this.call('POST', `/v1/agents/${body.agent_id}/messages`, { text });
    return body.agent_id;
  }
}

async function firstLine(child) {
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the program ended with ${code} before it served`);
  });
  const [line] = await Promise.race([once(lines, 'line'), ended]);
  ended.catch(() => {}); // it ends one day
  return line;
}
