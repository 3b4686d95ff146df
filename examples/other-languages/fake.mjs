// The fake for tests in Node 20 or later, without any package.
//
//   const fake = await Fake.start();  // starts agentmessaging-fake on a free port, and waits until it serves
//   await fake.reset();               // before each test: empty, no faults, the clock back, calls that hang let go
//   await fake.stop();
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

export class Fake {
  static async start(flags = [], program = 'agentmessaging-fake') {
    const fake = new this();
    fake.folder = mkdtempSync(join(tmpdir(), 'fake-'));
    const ready = join(fake.folder, 'ready'); // once it is there, it is whole
    const args = ['--addr=127.0.0.1:0', '--log=off', '--json', '--until-eof', '--ready-file', ready, ...flags];
    fake.process = spawn(program, args, { stdio: ['pipe', 'ignore', 'inherit'] }); // it ends with this process
    const failed = once(fake.process, 'exit').then(([code]) => {
      throw new Error(`the fake has ended with ${code}; standard error says why`);
    });
    failed.catch(() => {}); // it may end later
    while (!existsSync(ready)) await Promise.race([setTimeout(10), failed]);
    const facts = JSON.parse(readFileSync(ready, 'utf8'));
    fake.baseURL = facts.base_url;
    fake.key = facts.api_key;
    return fake;
  }

  // control calls the control interface: control('POST', '/clock', { duration: '24h' }).
  async control(method, path, body) {
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json' };
    const resp = await fetch(`${this.baseURL}/_fake/v1${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await resp.text();
    if (!resp.ok) throw new Error(`${method} ${path}: ${resp.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  reset() {
    return this.control('POST', '/reset');
  }

  // story has a line for each call: what a failed test shows.
  async story() {
    const { calls } = await this.control('GET', '/calls');
    return calls.map((c) => `${c.trace_id} ${c.method} ${c.path} ${c.sent.status} ${c.why ?? ''}`).join('\n');
  }

  // stop ends the fake. SIGKILL ends it at once, also where a client keeps its connections.
  async stop(signal) {
    this.process.kill(signal);
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, 'exit');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
