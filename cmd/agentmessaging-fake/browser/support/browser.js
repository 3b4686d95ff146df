// One Chromium, one page and one program for all tests of a process: starting them takes
// longer than most tests. Between two tests the program is reset and the page is empty.
import { after } from 'node:test';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { patience } from './expect.js';
import { startFake } from './fake.js';

// Chromium makes requests by itself, for updates and the like. These keep it from that.
const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
// Chromium itself can then find no other host, whatever the page tries.
const nowhere = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';

let shared; // promises of the program and of the context, once a test has asked for them
let wrong = []; // what the page has done that it must not do

async function share() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    chromiumSandbox: process.getuid?.() !== 0, // Chromium has none for root
    args: [...quiet, nowhere],
  });
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
  context.setDefaultTimeout(patience);
  context.on('weberror', (err) => wrong.push(`threw ${err.error().stack}`));
  context.on('dialog', (dialog) => {
    wrong.push(`showed ${dialog.message()}`);
    dialog.dismiss();
  });
  context.on('console', (message) => {
    // Chromium reports each refused or broken request; the tests cause some.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(`said ${message.text()}`);
  });
  return { browser, context, fake: await startFake() };
}

// The program is killed: it has nothing to save, and a fault that hangs would keep it.
after(async () => {
  const { browser, fake } = (await shared) ?? {};
  await Promise.all([browser?.close(), fake?.stop('SIGKILL')]);
});

// open opens the page of the shared program, or with args of a program for this test.
// Further options: hash for the address, prepare(fake) to run before the page opens,
// the width of the page and its colours. The test fails where the page reports an
// error or asks another host for anything.
export async function open(t, { args, hash = '', prepare, width = 1280, height = 800, colorScheme = 'light' } = {}) {
  shared ??= share();
  const { context, fake: common } = await shared;
  const fake = args ? await startFake(...args) : common;
  const [page = await context.newPage()] = context.pages();
  // A page that asked another host would leak what it shows, so each request is looked
  // at.
  const asked = (request) => new URL(request.url()).origin === fake.baseURL || wrong.push(`asked ${request.url()}`);
  context.on('request', asked);
  t.after(async () => {
    // Nothing waits for what the page has open.
    await (args ? fake.stop('SIGKILL') : fake.control('POST', '/reset'));
    await Promise.all(context.pages().slice(1).map((tab) => tab.close()));
    const [left] = context.pages();
    await left.goto('about:blank');
    await left.mouse.move(0, 0);
    context.off('request', asked);
    assert.deepEqual(wrong.splice(0), [], 'the page misbehaved');
  });
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme });
  await prepare?.(fake);
  await page.goto(`${fake.baseURL}/${hash}`);
  await page.locator('[data-phase=live], [aria-label="Control token"]').first().waitFor();
  return { fake, page };
}

// calls are the rows of the traffic.
export function calls(page) {
  return page.getByLabel('Calls, the newest first').getByRole('link');
}

// live waits until the page has its stream.
export function live(page) {
  return page.locator('[data-phase=live]').waitFor();
}
