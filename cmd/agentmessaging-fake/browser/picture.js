// Takes the picture of the page for the docs: a mixed list with a call that met a 429.
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { calls, open } from './support/browser.js';
import { populate } from './support/content.js';

// A client that comes back too soon, once its limit is spent.
async function hurry(fake) {
  await populate(fake);
  const say = () => fake.call('POST', '/v1/agents/agent_000001/messages', { text: 'And twelve rolls.' });
  while ((await say()).status === 200);
  await fake.control('POST', 'clock', { duration: '2s' });
  await say();
}

test('the picture is taken', async (t) => {
  const { page } = await open(t, { args: ['--limits', 'key_minute=11'], width: 1200, height: 610, prepare: hurry });
  await calls(page).nth(1).click();
  await page.getByLabel('The open call').getByRole('note').waitFor();
  await page.mouse.move(500, 20);
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: fileURLToPath(new URL('../../../docs/pictures/fake-page.png', import.meta.url)) });
});
