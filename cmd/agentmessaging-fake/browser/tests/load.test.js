import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { many } from '../support/many.js';
import { wantText, eventually } from '../support/expect.js';

// cost is what n further calls, one drawn before the next is made, cost the
// page: layouts, elements at the end, and the time of its scripts and layouts.
async function cost(cdp, page, fake, n) {
  const before = await metrics(cdp);
  for (let i = 0; i < n; i++) {
    const newest = await calls(page).first().getAttribute('id');
    await fake.call('GET', '/v1/status');
    await page.waitForFunction((id) => document.querySelector('.vrow').id !== id, newest);
  }
  const after = await metrics(cdp);
  const spent = (name) => after[name] - before[name];
  return {
    layouts: spent('LayoutCount'),
    elements: await page.locator('#app *').count(),
    seconds: spent('ScriptDuration') + spent('LayoutDuration') + spent('RecalcStyleDuration'),
  };
}

async function metrics(cdp) {
  const { metrics: found } = await cdp.send('Performance.getMetrics');
  return Object.fromEntries(found.map((m) => [m.name, m.value]));
}

test('10,000 calls are held, and further ones cost no more than the first', async (t) => {
  const { fake, page } = await open(t, { args: ['--limits', 'off'] });
  const sum = page.locator('.sum');
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  await many(fake, 100);
  await wantText(sum, '100 calls');
  const few = await cost(cdp, page, fake, 30);

  await many(fake, 9_870);
  await wantText(sum, '10,000 calls');
  const lots = await cost(cdp, page, fake, 30);
  t.diagnostic(`30 calls, at 100: ${JSON.stringify(few)}; at 10,000: ${JSON.stringify(lots)}`);
  await wantText(sum, '10,000 calls'); // the oldest went
  assert.ok(lots.elements <= few.elements + 20, 'the elements do not grow with the calls');
  assert.ok(lots.layouts <= 30 * 8, 'layouts come with drawings, not with rows');
  // The factor is about 1; what is linear in the calls would be near 100.
  assert.ok(lots.seconds < few.seconds * 8 + 0.2, 'adding a call stays cheap');

  await wantPlaceKept(page, fake);
  await page.getByLabel('Filter calls by text').fill('trace_0100');
  await wantText(page.locator('.sum'), /^\d+ of 10,000 calls$/);
});

// Who has scrolled down keeps seeing the same call while others arrive.
async function wantPlaceKept(page, fake) {
  const list = page.getByRole('listbox');
  const place = () =>
    list.evaluate((e) => {
      const { x, y } = e.getBoundingClientRect();
      const row = document.elementFromPoint(x + 60, y + 60)?.closest('[role=option]');
      return { id: row?.id, from: Number(row?.getAttribute('aria-posinset')) };
    });
  await list.evaluate((e) => (e.scrollTop = 50_000));
  await eventually(page, async () => assert.ok((await place()).from > 1000));
  const before = await place();
  await many(fake, 50);
  await eventually(page, async () => assert.deepEqual(await place(), { id: before.id, from: before.from + 50 }));
}
