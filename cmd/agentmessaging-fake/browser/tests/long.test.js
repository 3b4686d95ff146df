import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { eventually, wantCount, wantText } from '../support/expect.js';

const long = 'x'.repeat(3_890);

// talk puts n long exchanges behind those of an agent.
async function talk(fake, agent, n) {
  for (let from = 0; from < n; from += 100) {
    const exchanges = Array.from({ length: 100 }, (_, i) => ({ text: `${from + i} ${long}`, reply_text: long, trace_id: `seeded_${from + i}` }));
    await fake.control('POST', `agents/${agent}/conversation`, { exchanges });
  }
}

test('a long conversation is drawn and fetched in part', async (t) => {
  const { fake, page } = await open(t, {
    args: ['--limits', 'off'],
    hash: '#/agents/agent_000001',
    prepare: async (fake) => talk(fake, await fake.agent(), 900),
  });
  const shown = page.getByRole('log').locator('.exchange');
  await wantCount(shown, 60);
  const frames = await page.evaluateHandle(() => {
    const seen = [];
    let last = performance.now();
    const frame = (at) => (seen.push(at - last), (last = at), requestAnimationFrame(frame));
    requestAnimationFrame(frame);
    return seen;
  });
  let fetched = 0;
  page.on('response', async (resp) => (fetched += /conversation|agents\?/.test(resp.url()) ? (await resp.body().catch(() => '')).length : 0));
  for (let i = 0; i < 30; i++) await fake.call('POST', '/v1/agents/agent_000001/messages', { text: `said ${i}` });
  await wantText(shown.last(), /said 29/);
  const sorted = await frames.evaluate((seen) => [...seen].sort((a, b) => a - b));
  t.diagnostic(`95 of 100 frames within ${Math.round(sorted[Math.floor(sorted.length * 0.95)])} ms; ${fetched} bytes fetched for 30 messages`);
  assert.ok(fetched < 500_000, `${fetched} bytes fetched for 30 short messages`);

  await page.getByRole('button', { name: /^Show earlier/ }).click();
  await eventually(page, async () => assert.ok((await shown.count()) >= 120));
});

test('thousands of agents are listed in part', async (t) => {
  const { fake, page } = await open(t, {
    args: ['--limits', 'off'],
    hash: '#/agents',
    prepare: async (fake) => {
      const one = (i) => fake.control('POST', 'agents', { key: 'key_000001', system_prompt: 'y'.repeat(1500), customer_ref: `customer ${i}` });
      for (let i = 0; i < 2_000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, n) => one(i + n)));
    },
  });
  let fetched = 0;
  page.on('response', async (resp) => (fetched += /agents\?/.test(resp.url()) ? (await resp.body().catch(() => '')).length : 0));
  await wantText(page.getByLabel('All agents').locator('.sum'), '2,000 agents');
  await fake.agent({ customer_ref: 'the newest' });
  await wantText(page.getByLabel('All agents').locator('.sum'), '2,001 agents');
  await eventually(page, async () => assert.ok(fetched > 0));
  assert.ok(fetched < 1_000_000, `${fetched} bytes fetched for one new agent`);
});
