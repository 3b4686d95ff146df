// Waits until something holds, and says what was there instead.
import assert from 'node:assert/strict';

// How long, in ms, a test waits for the page. It is long for a busy machine; a test
// that passes waits for none of it.
export const patience = 15_000;

// eventually repeats a check until it passes. The page draws once a frame, and
// so does this.
export async function eventually(page, check) {
  const end = Date.now() + patience;
  for (;;) {
    try {
      return await check();
    } catch (err) {
      if (!(err instanceof assert.AssertionError) || Date.now() > end) throw err;
    }
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}

// wantText waits until the element's text is, or matches, what is wanted.
export function wantText(locator, want) {
  return eventually(locator.page(), async () => {
    const got = (await locator.allInnerTexts()).join('\n');
    if (want instanceof RegExp) assert.match(got, want);
    else assert.equal(got, want);
  });
}

// wantCount waits until so many elements are there.
export function wantCount(locator, want) {
  return eventually(locator.page(), async () => assert.equal(await locator.count(), want));
}

// wantInView wants the element to be seen whole without scrolling.
export async function wantInView(locator) {
  const { x, y, width, height } = await locator.boundingBox();
  const view = locator.page().viewportSize();
  assert.ok(x >= 0 && y >= 0 && x + width <= view.width && y + height <= view.height, `${await locator.innerText()} is out of view`);
}

// wantFit wants nothing to scroll sideways.
export async function wantFit(page, where) {
  const wide = await page.evaluate(() => [...document.querySelectorAll('html, main, section, aside, .said, .rows')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className || e.tagName));
  assert.deepEqual(wide, [], `${where} scrolls sideways`);
}
