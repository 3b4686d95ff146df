import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { calls, open } from '../support/browser.js';
import { populate } from '../support/content.js';
import { patience, wantInView, wantText } from '../support/expect.js';

const messages = '/v1/agents/agent_000001/messages';

// Each row is what goes wrong, the sentence that has to explain it in the newest row of
// the list, the fault, and how long the client waits. The first sentence is the fake's own.
const failures = [
  ['lost reply', /reset[^]*LoseReply\(ResetConnection\(\)\) ended the connection without an answer; the agent has the message/, { kind: 'lose_reply', how: { kind: 'reset_connection' } }],
  ['malformed body received', /RawAnswer\(200[^]*What arrived is not JSON/, { kind: 'raw_answer', status: 200, content_type: 'text/html', body: '<h1>Bad gateway</h1>' }],
  ['stalled body', /DripReply\(4, 1h0m0s\) sent 4 bytes at a time[^]*the agent has the message. The client left after/, { kind: 'drip_reply', bytes: 4, every: '1h' }, 500],
];

test('each failure is explained in the list of a narrow page, without a click', async (t) => {
  const { fake, page } = await open(t, { width: 360, height: 740, prepare: (fake) => fake.agent() });
  for (const [what, sentence, fault, wait = patience] of failures) {
    await t.test(what, async () => {
      await fake.control('POST', '/faults', { fault, times: 1 });
      await fake.call('POST', messages, { text: 'Hello' }, { signal: AbortSignal.timeout(wait) }).catch(() => {});
      await wantText(calls(page).first(), sentence);
      await wantInView(calls(page).first());
    });
  }
});

test('a call shows what the client got and what the service decided', async (t) => {
  const { page } = await open(t, { prepare: populate });
  const detail = page.getByLabel('The open call');
  const firstWith = (text) => calls(page).filter({ hasText: text }).last(); // the newest is on top
  await wantText(firstWith('A cake'), /^reset/);
  await firstWith('A cake').click();
  await wantText(detail, /Decided\s+200[^]*then: reset[^]*What the service decided[^]*You wrote: A cake/);
  await firstWith('rye bread').click();
  await wantText(detail, /Status\s+429[^]*Decided\s+nothing[^]*What the client got[^]*rate_limited/);
  await detail.getByText(/headers$/).nth(1).click();
  await wantText(detail, /Retry-After: 1/);
});

test('a call is sent again, and edited', async (t) => {
  const { page } = await open(t, { prepare: (fake) => fake.agent({}, 'as it was') });
  await calls(page).first().click();
  const detail = page.getByLabel('The open call');
  await detail.getByRole('button', { name: 'Send again' }).click();
  await wantText(page.locator('.notice.good'), /the service answered 200/);
  await detail.locator('textarea').fill('{"text":5}');
  await detail.getByRole('button', { name: 'Send again' }).click();
  await wantText(page.locator('.notice.good'), /the service answered 400/);
});

// Everything that a shell might trip over.
const awkward = `it's "quoted" \`tick\` $HOME \\ new\nline \u2028 \u202e ü 😀 </script>`;
const awkwardPath = "/v1/agents/$(touch${IFS}pwned)`id`;'x'[1-2]{a}/../y";

test('a call copied as curl makes the same call again, whatever its text and path hold', async (t) => {
  const { fake, page } = await open(t, {
    prepare: async (fake) => {
      await fake.agent({}, awkward + '\u0001'.repeat(3000)); // 18 KB as JSON
      await fake.call('GET', awkwardPath);
    },
  });
  const { calls: made } = await fake.control('GET', '/calls');
  const detail = page.getByLabel('The open call');
  for (const copied of made) {
    await page.goto(`${fake.baseURL}/#/traffic/${copied.seq}`);
    await wantText(detail.getByRole('heading').first(), `${copied.method} ${copied.path}`);
    const curl = await detail.getByRole('region', { name: 'As curl' }).textContent();
    await promisify(execFile)('bash', ['-c', curl], {
      env: { PATH: process.env.PATH, AGENT_MESSAGING_BASE_URL: fake.baseURL, AGENT_MESSAGING_API_KEY: fake.key },
    });
    const again = (await fake.control('GET', '/calls')).calls.at(-1);
    for (const name of ['method', 'path', 'key', 'body', 'status']) assert.equal(again[name], copied[name], name);
  }
});

test('a copy holds no key, and says so where the body was not kept', async (t) => {
  const { fake, page } = await open(t);
  const detail = page.getByLabel('The open call');
  await fake.call('PUT', '/v1/byok', { provider: 'openai', api_key: 'sk-not-to-be-seen' });
  await calls(page).first().click();
  await wantText(detail, /--data-raw '\{"provider":"openai","api_key":"'"\$PROVIDER_API_KEY"'"\}'/);
  await fake.call('POST', '/v1/agents', { system_prompt: 'x'.repeat(70_000) });
  const { calls: made } = await fake.control('GET', '/calls');
  await page.goto(`${fake.baseURL}/#/traffic/${made.at(-1).seq}`);
  await wantText(detail, /# The body of this call was not kept whole/);
  for (const key of ['sk-not-to-be-seen', fake.key]) assert.ok(!(await page.content()).includes(key));
});
