// Takes the picture of the page for the docs: an agent's story.
import { chromium } from 'playwright-core';
import { fileURLToPath } from 'node:url';
import { startFake } from './support/fake.js';
import { populate } from './support/content.js';

const target = fileURLToPath(new URL('../../../docs/fake-page.png', import.meta.url));
const atEnd = [];
const fake = await startFake({ after: (f) => atEnd.push(f) });
try {
  await populate(fake);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', chromiumSandbox: process.getuid?.() !== 0, args: ['--disable-gpu'] });
  atEnd.push(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 }, colorScheme: 'light' });
  await page.goto(`${fake.page}#/agents/agent_000001`);
  await page.locator('[data-phase=live]').waitFor();
  await page.getByRole('log').locator('a.attempt').first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: target });
  console.log(target);
} finally {
  for (const f of atEnd.reverse()) await f();
}
