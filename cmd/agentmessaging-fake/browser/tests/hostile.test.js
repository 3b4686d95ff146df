import test from 'node:test';
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { calls, open, live } from '../support/browser.js';
import { wantFit, wantText, wantCount } from '../support/expect.js';

const script = '<script>window.pwned=1</script>';
const image = '<img src=x onerror=window.pwned=2>';
const evil = `${script}${image}\u202e"'\`\${window.pwned=3}{{7*7}}javascript:alert(1)`;

// fill puts the text into every field that an application, or a test, can set.
async function fill(fake, text) {
  const headers = { 'User-Agent': encodeURI(text) };
  await fake.call('POST', '/v1/agents', {
    system_prompt: text,
    customer_ref: text.slice(0, 200),
    metadata: { [text]: text },
    llm: { mode: 'byok', provider: 'openai', api_key: 'sk', model: text.slice(0, 200), base_url: `https://x.example/${encodeURI(script)}`, label: text.slice(0, 60) },
  }, { headers });
  await fake.control('POST', 'replies', { replies: [{ text, warnings: [text] }, { status: 404, code: text, reason: text }] });
  await fake.control('PUT', 'agents/agent_000001/sms', { status: 'active', phone_number: text.slice(0, 64) });
  for (let i = 0; i < 2; i++) await fake.call('POST', '/v1/agents/agent_000001/messages', { text, user_ref: text });
  await fake.control('POST', 'agents/agent_000001/conversation', { exchanges: [{ text, reply_text: text, warnings: [text], user_ref: text, trace_id: text }] });
  await fake.control('POST', 'agents', { key: 'key_000001', agent_id: text.slice(0, 200), status: text.slice(0, 64), customer_ref: text.slice(0, 200) });
  await fake.control('POST', 'faults', { fault: { kind: 'raw_answer', status: 418, content_type: 'text/html', body: text }, match: { endpoint: 'GET /v1/status' } });
  await fake.control('POST', 'faults', { fault: { kind: 'hang' }, match: { text_containing: text } });
  await fake.call('GET', '/v1/status');
  await raw(fake, '/v1/agents/<script>window.pwned=4</script>');
}

// raw sends a path as it is; fetch would escape it.
function raw(fake, path) {
  return new Promise((resolve, reject) => {
    const req = request(fake.baseURL, { path, headers: { Authorization: `Bearer ${fake.key}`, 'X-Trick': script } }, (resp) => resp.resume().on('end', resolve));
    req.on('error', reject).end();
  });
}

async function wantHarmless(page) {
  const found = await page.evaluate(() => ({
    pwned: window.pwned,
    scripts: [...document.scripts].map((s) => s.getAttribute('src')),
    images: [...document.images].map((i) => i.getAttribute('src')),
    handlers: [...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames()).filter((name) => name.startsWith('on')),
  }));
  assert.deepEqual(found, { pwned: undefined, scripts: ['/_fake/assets/app.js'], images: ['/_fake/assets/icon.svg'], handlers: [] });
}

test('markup in every field shows as text', async (t) => {
  const { fake, page } = await open(t, { prepare: (fake) => fill(fake, evil) });
  const rows = calls(page);
  const count = (await fake.control('GET', 'calls')).calls.length;
  await wantCount(rows, count);
  for (let i = 0; i < count; i++) {
    await rows.nth(i).click();
    await wantHarmless(page);
  }
  await page.goto(`${fake.page}#/agents/agent_000001`);
  await wantText(page.getByLabel('About the agent'), /<script>window\.pwned=1<\/script><img src=x onerror=window\.pwned=2>/);
  await wantText(page.getByRole('log'), /<script>window\.pwned=1<\/script>/);
  await wantHarmless(page);

  await page.goto(`${fake.page}#/rules`);
  await wantText(page.locator('.rule'), /<script>/);
  await wantHarmless(page);
});

test('a hostile address of the page does nothing', async (t) => {
  const { fake, page } = await open(t);
  for (const hash of [`#/agents/${encodeURIComponent(evil)}`, `#/keys/${evil}`, '#/keys/%E0%A4%A', '#/__proto__/x', `#/${script}`]) {
    await page.goto(fake.page + hash);
    await live(page);
    await wantHarmless(page);
  }
});

test('endless words do not push the page out of its frame', async (t) => {
  const { fake, page } = await open(t, { width: 400, prepare: (fake) => fill(fake, 'W'.repeat(1900)) });
  for (const hash of ['#/keys', '#/agents', '#/agents/agent_000001', '#/rules', '#/traffic']) {
    await page.goto(fake.page + hash);
    await live(page);
    await wantFit(page, hash);
  }
  await calls(page).nth(2).click();
  await page.getByLabel('The open call').waitFor();
  await wantFit(page, 'a call');
});
