// The program under test: the fake that tests in Node copy, with calls of the service.
import { fileURLToPath } from 'node:url';
import { Fake } from '../../../../examples/other-languages/fake.mjs';

// npm run build has put it there.
const program = fileURLToPath(new URL('../.build/agentmessaging-fake', import.meta.url));

// startFake answers once the program serves.
export function startFake(...flags) {
  return ServedFake.start(flags, program);
}

// ServedFake is the class that a test in Node copies from the examples, so that these
// tests hold the example as well.
class ServedFake extends Fake {
  // call makes a call of the service, as an application would. A string is sent as it is.
  async call(method, path, body, { key = this.key, headers = {}, signal } = {}) {
    const resp = await fetch(this.baseURL + path, {
      method,
      signal,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'object' ? JSON.stringify(body) : body,
    });
    return { status: resp.status, body: await resp.json().catch(() => undefined) };
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
