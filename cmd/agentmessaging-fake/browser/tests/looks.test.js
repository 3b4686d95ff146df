import test from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { calls, open, live } from '../support/browser.js';
import { fill, populate } from '../support/content.js';
import { wantFit, wantCount } from '../support/expect.js';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// Each is an address and what makes the panel complete.
const panels = {
  traffic: ['#/traffic', (page) => calls(page).first().waitFor()],
  call: ['#/traffic', (page) => calls(page).nth(2).click()],
  keys: ['#/keys/key_000001', (page) => wantCount(page.locator('.gauge'), 7)],
  agents: ['#/agents/agent_000001', (page) => page.getByRole('log').locator('.exchange').first().waitFor()],
  rules: ['#/rules', (page) => page.locator('.rule').first().waitFor()],
  reset: ['#/keys', (page) => page.getByRole('button', { name: 'Reset' }).click()],
};

// On the narrow page endless words must not push anything out of its frame either.
const narrow = (fake) => populate(fake).then(() => fill(fake, 'W'.repeat(1900)));

for (const [colorScheme, width, prepare] of [['dark', 1440, populate], ['light', 360, narrow]]) {
  test(`in ${colorScheme} at ${width} every panel fits and is accessible`, async (t) => {
    const { fake, page } = await open(t, { colorScheme, width, prepare });
    await page.evaluate(axe);
    for (const [name, [hash, ready]] of Object.entries(panels)) {
      await page.goto(`${fake.baseURL}/${hash}`);
      await live(page);
      await ready(page);
      await wantFit(page, name);
      await wantAccessible(page, name);
    }
  });
}

async function wantAccessible(page, name) {
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter((v) => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [], name);
}
