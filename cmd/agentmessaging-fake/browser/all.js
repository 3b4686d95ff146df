// All tests in one process, so that they share a Chromium.
import { readdirSync } from 'node:fs';

for (const name of readdirSync(new URL('tests/', import.meta.url))) await import(`./tests/${name}`);
