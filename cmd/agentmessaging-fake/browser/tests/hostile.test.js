import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open, live } from '../support/browser.js';
import { fill, script } from '../support/content.js';
import { wantText, wantCount } from '../support/expect.js';

const image = '<img src=x onerror=window.pwned=2>';
const evil = `${script}${image}\u202e"'\`\${window.pwned=3}{{7*7}}javascript:alert(1)`;

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
  const count = (await fake.control('GET', '/calls')).calls.length;
  await wantCount(rows, count);
  for (let i = 0; i < count; i++) {
    await rows.nth(i).click();
    await wantHarmless(page);
  }
  await page.goto(`${fake.baseURL}/#/agents/agent_000001`);
  await wantText(page.getByLabel('About the agent'), /<script>window\.pwned=1<\/script><img src=x onerror=window\.pwned=2>/);
  await wantText(page.getByRole('log'), /<script>window\.pwned=1<\/script>/);
  await wantHarmless(page);

  await page.goto(`${fake.baseURL}/#/rules`);
  await wantText(page.locator('.rule'), /<script>/);
  await wantHarmless(page);
});

test('a hostile address of the page does nothing', async (t) => {
  const { fake, page } = await open(t);
  for (const hash of [`#/agents/${encodeURIComponent(evil)}`, `#/keys/${evil}`, '#/keys/%E0%A4%A', '#/__proto__/x', `#/${script}`]) {
    await page.goto(`${fake.baseURL}/${hash}`);
    await live(page);
    await wantHarmless(page);
  }
});
