import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../support/browser.js';
import { wantText, wantCount } from '../support/expect.js';

const gauge = (page, limit) => page.locator(`[data-limit=${limit}]`);

// The seven limits of interface 8.1, in its words and order.
const preview = [
  ['key_minute', '60'],
  ['ip_minute', '120'],
  ['key_day', '1,000'],
  ['agent_create_key_day', '50'],
  ['agent_create_ip_minute', '10'],
  ['byok_set_key_hour', '5'],
  ['warmup_key_hour', '3'],
];

test('calls fill the gauges as they happen', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  await fake.agent();
  await fake.call('POST', '/v1/warmup');
  await wantText(gauge(page, 'key_minute'), /58 of 60 left/);
  await wantText(gauge(page, 'agent_create_key_day'), /49 of 50 left/);
  await wantText(gauge(page, 'warmup_key_hour'), /2 of 3 left/);
  assert.equal(await gauge(page, 'key_minute').getByRole('meter').getAttribute('aria-valuenow'), '2');
});

test('each limit shows what is left, can be exhausted, and says when it opens', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys' });
  await wantCount(page.locator('.gauge'), 7);
  for (const [limit, max] of preview) {
    await wantText(gauge(page, limit), new RegExp(`${max} of ${max} left\\s+open`));
    await gauge(page, limit).getByRole('button').click();
    await wantText(gauge(page, limit), new RegExp(`0 of ${max} left\\s+shut\\s+opens in \\d`));
  }
  const refused = await fake.call('POST', '/v1/warmup'); // three limits refuse it; the one that opens last is named
  assert.deepEqual([refused.status, refused.body.limit_key], [429, 'key_day']);
});

test('a limit that opens in time shows it without a further call', async (t) => {
  const { fake, page } = await open(t, { hash: '#/keys', prepare: (fake) => fake.control('POST', 'keys/key_000001/limits/key_minute/exhaust') });
  await wantText(gauge(page, 'key_minute'), /shut\s+opens in/);
  await fake.control('POST', 'clock/advance', { duration: '50s' });
  const { limits } = await fake.control('GET', 'keys/key_000001/limits');
  const { now } = await fake.control('GET', 'clock');
  const left = (Date.parse(limits[0].opens_at) - Date.parse(now)) / 1000;
  await fake.control('POST', 'clock/advance', { duration: `${left - 1}s` });
  await wantText(gauge(page, 'key_minute'), /60 of 60 left\s+open/);
});

test('without limits there is nothing to exhaust', async (t) => {
  const { page } = await open(t, { hash: '#/keys', args: ['--limits', 'off'] });
  await wantText(gauge(page, 'key_day'), /No limit$/m);
  assert.ok(await gauge(page, 'key_day').getByRole('button').isDisabled());
});
