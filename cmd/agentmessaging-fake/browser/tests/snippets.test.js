import test from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { calls, open } from '../support/browser.js';
import { wantText } from '../support/expect.js';

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
  const { calls: made } = await fake.control('GET', 'calls');
  const detail = page.getByLabel('The open call');
  for (const copied of made) {
    await page.goto(`${fake.page}#/traffic/${copied.seq}`);
    await wantText(detail.getByRole('heading').first(), `${copied.method} ${copied.path}`);
    const curl = await detail.getByRole('region', { name: 'As curl' }).textContent();
    await promisify(execFile)('bash', ['-c', curl], {
      env: { PATH: process.env.PATH, AGENT_MESSAGING_BASE_URL: fake.base, AGENT_MESSAGING_API_KEY: fake.key },
    });
    const again = (await fake.control('GET', 'calls')).calls.at(-1);
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
  const { calls: made } = await fake.control('GET', 'calls');
  await page.goto(`${fake.page}#/traffic/${made.at(-1).seq}`);
  await wantText(detail, /# The body of this call was not kept whole/);
  for (const key of ['sk-not-to-be-seen', fake.key]) assert.ok(!(await page.content()).includes(key));
});
