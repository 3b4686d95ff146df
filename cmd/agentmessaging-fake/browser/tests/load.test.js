import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { many } from '../support/many.js';
import { eventually, wantCount, wantText } from '../support/expect.js';

// meter answers what the page has used so far, by Chromium's own names, and how
// many functions it has called for each drawing since it was last asked. No
// time, which also depends on what else the machine does.
async function meter(page) {
  const cdp = await page.context().newCDPSession(page);
  for (const domain of ['Performance', 'Profiler']) await cdp.send(`${domain}.enable`);
  await cdp.send('Profiler.startPreciseCoverage', { callCount: true });
  return async () => {
    await cdp.send('HeapProfiler.collectGarbage');
    const { metrics } = await cdp.send('Performance.getMetrics');
    const { result } = await cdp.send('Profiler.takePreciseCoverage');
    const functions = result.filter((script) => script.url.includes('/_fake/assets/')).flatMap((script) => script.functions);
    const drawings = functions.find((f) => f.functionName === 'Shell').ranges[0].count;
    const perDrawing = Math.round(functions.reduce((sum, f) => sum + f.ranges[0].count, 0) / drawings);
    return { ...Object.fromEntries(metrics.map((m) => [m.name, m.value])), perDrawing };
  };
}

// cost makes n further calls, each drawn before the next, and measures the page:
// its layouts, its elements at the end, the functions called for a drawing.
async function cost(read, page, fake, n) {
  const before = await read();
  for (let i = 0; i < n; i++) {
    const newest = await calls(page).first().getAttribute('id');
    await fake.call('GET', '/v1/status');
    await page.waitForFunction((id) => document.querySelector('.vrow').id !== id, newest);
  }
  const after = await read();
  return {
    layouts: after.LayoutCount - before.LayoutCount,
    elements: await page.locator('#app *').count(),
    perDrawing: after.perDrawing,
  };
}

test('of 10,000 calls a window is held, and further ones cost no more than the first', async (t) => {
  const { fake, page } = await open(t, { args: ['--limits', 'off'] });
  const sum = page.locator('.sum');
  const read = await meter(page);
  await many(fake, 100);
  await wantText(sum, '100 calls');
  const few = await cost(read, page, fake, 30);

  await many(fake, 9_870);
  await wantText(sum, '10,000 calls');
  const lots = await cost(read, page, fake, 30);
  t.diagnostic(`30 calls, at 100: ${JSON.stringify(few)}; at 10,000: ${JSON.stringify(lots)}`);
  await wantText(sum, /^10,0[03]0 calls$/);
  assert.ok(lots.elements <= few.elements + 20, 'the elements do not grow with the calls');
  assert.ok(lots.layouts <= 30 * 8, 'layouts come with drawings, not with rows');
  // The factor is about 1; one function for each call that is held makes it 2.4.
  assert.ok(lots.perDrawing < few.perDrawing * 1.5, 'adding a call stays cheap');

  await wantPlaceKept(page, fake);
  await page.getByRole('listbox').evaluate((e) => (e.scrollTop = 5000)); // which holds the list that there is
  await page.getByLabel('Filter calls by text').fill('trace_0100');
  await wantText(page.locator('.sum'), /^\d+ of [\d,]+ calls$/);
  await page.getByLabel('Filter calls by text').fill('byok');
  await wantText(page.locator('.sum'), /^0 of/);
  await fake.call('GET', '/v1/byok');
  await wantCount(calls(page), 1);
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
  await list.evaluate((e) => (e.scrollTop = 20_000));
  await eventually(page, async () => assert.ok((await place()).from > 400));
  const before = await place();
  await many(fake, 50);
  await page.getByRole('button', { name: '50 new' }).waitFor();
  assert.deepEqual(await place(), before);
  await page.getByRole('button', { name: '50 new' }).click();
  await eventually(page, async () => assert.ok((await place()).from < 10));
}
