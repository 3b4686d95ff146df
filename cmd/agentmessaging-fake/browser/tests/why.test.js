import test from 'node:test';
import { calls, open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

test('an open call begins with the sentence that explains it', async (t) => {
  const { fake, page } = await open(t, {
    prepare: async (fake) => {
      await fake.agent();
      await fake.control('POST', 'keys', {});
      await fake.call('GET', '/v1/agents/agent_000001', undefined, { key: 'amk_fake_000002' });
      await fake.call('POST', '/v1/agents/agent_000001/messages', { text: 'x'.repeat(4001) });
      await fake.control('POST', 'faults', { fault: { kind: 'answer', status: 503 }, times: 1 });
      await fake.call('GET', '/v1/status');
      await fake.control('PATCH', 'keys/key_000001', { revoked: true });
      await fake.call('GET', '/v1/status');
    },
  });
  const why = page.getByLabel('The open call').getByRole('note');
  for (const sentence of [/401: key_000001 was revoked/, /Answer\(503/, /400: text has 4,001 characters, 4,000 are allowed/, /404: the agent belongs to key_000001/]) {
    const i = [/401/, /Answer/, /400/, /404/].findIndex((start) => start.source.slice(0, 3) === sentence.source.slice(0, 3));
    await calls(page).nth(i).click();
    await wantText(why, sentence);
  }
});

test('a call shows from the moment it arrives until it is answered', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.control('POST', 'faults', { fault: { kind: 'hang' } }) });
  const left = new AbortController();
  fetch(`${fake.base}/v1/status`, { headers: { Authorization: `Bearer ${fake.key}` }, signal: left.signal }).catch(() => {});
  const row = page.locator('[role=option]').first();
  await wantText(row, /no answer/);
  left.abort();
  await fake.control('DELETE', 'faults');
  await fake.control('POST', 'faults', { fault: { kind: 'latency', duration: '4s' } });
  fetch(`${fake.base}/v1/status`, { headers: { Authorization: `Bearer ${fake.key}` }, signal: AbortSignal.timeout(20_000) }).catch(() => {});
  await wantText(page.getByLabel('Calls under way'), /\d+ s\s*GET\s*\/v1\/status/);
  await wantCount(page.getByLabel('Calls under way'), 0);
  await wantText(row, /200/);
});
