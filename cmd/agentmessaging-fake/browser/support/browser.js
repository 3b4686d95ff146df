// One Chromium for the tests of a file, and for each test a page that may talk to the
// fake alone.
import { after } from 'node:test';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { patience } from './expect.js';
import { startFake } from './fake.js';

const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
// Chromium itself can then find no other host, whatever the page tries.
const nowhere = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';

let started;

export function browser() {
  started ??= chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    chromiumSandbox: process.getuid?.() !== 0, // Chromium has none for root
    args: [...quiet, nowhere],
  });
  return started;
}

after(async () => (await started)?.close());

// open starts a fake and opens its page. Options: args for the program, hash for
// the address, prepare(fake) to run before the page opens, and any option of a
// browser context. The test fails where the page reports an error or asks another
// host for anything.
export async function open(t, { args = [], hash = '', prepare, ...context } = {}) {
  const fake = await startFake(t, ...args);
  await prepare?.(fake);
  const page = await openPage(t, fake, context);
  await page.goto(fake.page + hash);
  await live(page);
  return { fake, page };
}

export async function openPage(t, fake, options = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const wrong = [];
  context.on('request', (request) => {
    if (new URL(request.url()).origin !== fake.base) wrong.push(`asked ${request.url()}`);
  });
  page.on('pageerror', (err) => wrong.push(`threw ${err.stack}`));
  page.on('dialog', (dialog) => {
    wrong.push(`showed ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('console', (message) => {
    // Chromium reports each refused or broken request; the tests cause some.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(`said ${message.text()}`);
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, [], 'the page misbehaved');
  });
  return page;
}

// calls are the rows of the traffic.
export function calls(page) {
  return page.getByLabel('Calls, the newest first').getByRole('link');
}

export function live(page) {
  return page.locator('[data-phase=live]').waitFor();
}
