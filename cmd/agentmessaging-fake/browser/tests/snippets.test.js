import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { calls, open } from '../support/browser.js';
import { wantCount, wantText } from '../support/expect.js';

const run = promisify(execFile);

// Everything that a shell, or Go source, might trip over.
const awkward = `it's "quoted" \`tick\` $HOME \\ new\nline \u2028 \u202e ü 😀 </script>`;

async function openNewest(page) {
  await calls(page).first().click();
  return page.getByLabel('The open call');
}

async function snippet(detail, name) {
  return (await detail.getByRole('region', { name }).locator('code').textContent()) ?? '';
}

test('a call copied as curl makes the same call again, whatever its text and path hold', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fake.agent({}, awkward + '\u0001'.repeat(3000)) }); // 18 KB as JSON
  await fake.call('GET', "/v1/agents/$(touch${IFS}pwned)`id`;'x'[1-2]{a}/../y");
  const detail = await openNewest(page);
  for (const row of [0, 2]) { // the first copy becomes the newest call
    await page.getByRole('banner').hover(); // off the list, which goes on then
    await wantCount(calls(page), row === 0 ? 3 : 4);
    await calls(page).nth(row).click();
    const { calls: made } = await fake.control('GET', 'calls');
    const copied = made.at(-1 - row);
    await wantText(detail.getByRole('heading').first(), `${copied.method} ${copied.path}`);
    await run('bash', ['-c', await snippet(detail, 'As curl')], {
      env: { PATH: process.env.PATH, AGENT_MESSAGING_BASE_URL: fake.base, AGENT_MESSAGING_API_KEY: fake.key },
    });
    const { calls: all } = await fake.control('GET', 'calls');
    assert.equal(all.length, made.length + 1);
    for (const name of ['method', 'path', 'key', 'body', 'status']) assert.equal(all.at(-1)[name], copied[name], name);
  }
});

test('a call copied as Go is Go, and formatted', async (t) => {
  const { fake, page } = await open(t, {
    prepare: async (fake) => {
      await fake.agent({ system_prompt: awkward, customer_ref: 'c', metadata: { a: [1, awkward] }, sms: { mode: 'sandbox' }, llm: { tier: 'smart', model: 'm' } });
      await fake.call('PUT', '/v1/byok', { provider: 'openai', api_key: 'sk-not-to-be-seen', label: 'main' });
      await fake.call('POST', '/v1/agents/agent_000001/channels/sms', { mode: 'managed' });
      await fake.call('GET', '/v1/byok');
      await fake.call('POST', '/v1/warmup', { mode: 'hosted' });
      await fake.call('DELETE', '/v1/byok');
      await fake.call('POST', '/v1/agents/agent_000001/messages', { text: awkward, user_ref: 'u' });
    },
  });
  const wants = [
    /client\.SendMessage\(ctx, "agent_000001", agentmessaging\.MessageParams\{/,
    /client\.ClearBYOK\(ctx\)/,
    /client\.WarmUp\(ctx, "hosted"\)/,
    /client\.GetBYOK\(ctx\)/,
    /client\.EnableSMS\(ctx, "agent_000001", "managed"\)/,
    /APIKey: +agentmessaging\.Secret\(os\.Getenv\("PROVIDER_API_KEY"\)\)/,
    /LLM: agentmessaging\.LLMParams\{/,
  ];
  const detail = await openNewest(page);
  for (const want of wants) {
    await wantText(detail, want);
    await wantFormatted(await snippet(detail, 'As Go'));
    await page.keyboard.press('ArrowDown');
  }
  assert.ok(!(await page.content()).includes('sk-not-to-be-seen'));
  assert.ok(!(await page.content()).includes(fake.key));
});

// wantFormatted has gofmt read the code inside a function.
async function wantFormatted(code) {
  const body = code.split('\n').map((line) => (line ? `\t${line}` : line));
  const source = `package p\n\nfunc f() error {\n${body.join('\n')}\n}\n`;
  const child = run('gofmt', ['-d']);
  child.child.stdin.end(source);
  assert.equal((await child).stdout, '', source);
}

test('what the SDK cannot send is said', async (t) => {
  const { fake, page } = await open(t);
  await fake.call('POST', '/v1/agents', { unknown: 1 });
  const detail = await openNewest(page);
  await wantText(detail, /member "unknown" is not allowed/);
  await wantText(detail, /--data-raw '\{"unknown":1\}'/);
  await wantText(detail, /\/\/ The client refuses this call before it sends anything\./);
  await fake.call('PATCH', '/v1/agents');
  await page.getByRole('banner').hover(); // off the list, which goes on then
  await wantText(calls(page).first(), /PATCH/);
  await calls(page).first().click();
  await wantText(detail, /The SDK has no method that sends this call/);
});
