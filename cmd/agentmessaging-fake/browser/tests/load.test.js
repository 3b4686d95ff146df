import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { many } from '../support/many.js';
import { eventually, wantCount, wantText } from '../support/expect.js';

test('of 2,000 calls a window is shown, what is read keeps its place, and all are searched', async (t) => {
  const { fake, page } = await open(t, {
    args: ['--limits', 'off'],
    prepare: async (fake) => {
      await fake.agent({}, 'She said "hello" to me');
      await many(fake, 1_998);
    },
  });
  await wantText(page.locator('.sum'), '2,000 calls');
  await wantCount(calls(page), 100);

  const list = page.locator('.rows');
  await list.evaluate((e) => (e.scrollTop = 2000));
  const read = () => list.evaluate((e) => document.elementFromPoint(e.getBoundingClientRect().x + 60, e.getBoundingClientRect().y + 60).closest('a').href);
  const before = await eventually(page, async () => {
    await page.getByRole('button', { name: /new/ }).waitFor({ state: 'hidden' });
    return read();
  });
  await many(fake, 300); // more than a window
  await page.getByRole('button', { name: '300 new' }).waitFor();
  assert.equal(await read(), before);
  await page.getByRole('button', { name: '300 new' }).click();
  await wantText(page.locator('.sum'), '2,300 calls');
  await eventually(page, async () => assert.match(await calls(page).first().getAttribute('href'), /2300/));

  const search = page.getByLabel('Filter calls by text');
  await search.fill('said "hello"');
  await wantText(page.locator('.sum'), '1 of 2,300 calls');
  await calls(page).first().click();
  await wantText(page.getByLabel('The open call'), /She said/);
  await search.fill('byok');
  await wantText(page.locator('.sum'), /^0 of/);
  await fake.call('GET', '/v1/byok');
  await wantCount(calls(page), 1);
  await search.fill('no such words');
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await page.getByRole('button', { name: 'Load older calls' }).click();
  await wantCount(calls(page), 200);
});
