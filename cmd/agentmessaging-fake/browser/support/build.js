// Builds the programs that the tests start, once for all of them.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const programs = {
  'agentmessaging-fake': './cmd/agentmessaging-fake',
  quickstart: './examples/quickstart',
};

for (const [name, source] of Object.entries(programs)) {
  execFileSync('go', ['build', '-buildvcs=false', '-o', here(`../.build/${name}`), source], {
    cwd: here('../../../..'),
    stdio: 'inherit',
  });
}
