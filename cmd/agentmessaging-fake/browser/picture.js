// Takes the picture of the page for the docs: an agent's story.
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from './support/browser.js';
import { populate } from './support/content.js';

test('the picture is taken', async (t) => {
  const { page } = await open(t, { hash: '#/agents/agent_000001', viewport: { width: 1600, height: 900 }, colorScheme: 'light', prepare: populate });
  await page.getByRole('log').locator('a.attempt').first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: fileURLToPath(new URL('../../../docs/pictures/fake-page.png', import.meta.url)) });
});
