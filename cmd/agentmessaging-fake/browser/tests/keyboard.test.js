import test from 'node:test';
import assert from 'node:assert/strict';
import { calls, open } from '../support/browser.js';
import { wantText, wantCount, eventually } from '../support/expect.js';

// tabTo walks to an element with Tab, and checks at each stop that the focus
// can be seen.
async function tabTo(page, locator) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab');
    const ring = await page.evaluate(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      return document.activeElement === document.body || (outlineStyle !== 'none' && outlineWidth !== '0px') ? '' : document.activeElement.outerHTML.slice(0, 200);
    });
    assert.equal(ring, '', 'the focus is not to be seen');
    if (await locator.evaluate((e) => e === document.activeElement)) return;
  }
  assert.fail(`Tab never came to ${locator}`);
}

const focused = (page, locator) => eventually(page, async () => assert.ok(await locator.evaluate((e) => e === document.activeElement)));

test('calls are walked, opened and closed by keys', async (t) => {
  const { fake, page } = await open(t, {
    prepare: async (fake) => {
      for (let i = 0; i < 40; i++) await fake.call('GET', `/v1/agents/agent_${i}`);
    },
  });
  const at = (n) => page.getByRole('link', { name: `/v1/agents/agent_${n} ` });
  await tabTo(page, at(39));
  await page.keyboard.press('ArrowDown');
  await focused(page, at(38));
  await page.keyboard.press('End');
  await focused(page, at(0));
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  const detail = page.getByLabel('The open call');
  await wantText(detail, /agent_39/);
  await fake.call('GET', '/v1/status'); // shows at once, and the focus stays where it was
  await wantText(calls(page).first(), /status/);
  await focused(page, at(39));
  await page.keyboard.press('ArrowDown');
  await wantText(detail, /agent_38/);
  await page.keyboard.press('Escape');
  await wantCount(detail, 0);
  await focused(page, at(38));
});

test('over a narrow page the open call takes the focus and gives it back', async (t) => {
  const { page } = await open(t, { width: 400, prepare: (fake) => fake.agent() });
  await tabTo(page, calls(page).first());
  await page.keyboard.press('Enter');
  await focused(page, page.getByLabel('The open call'));
  await page.keyboard.press('Escape');
  await focused(page, calls(page).first());
});
