// A wire that can be cut, between a page and the fake.
import { createServer, connect } from 'node:net';
import { once } from 'node:events';

export async function startProxy(t, target) {
  const { port, hostname } = new URL(target);
  const open = new Set();
  let whole = true;
  const server = createServer((near) => {
    if (!whole) return near.destroy();
    const far = connect(Number(port), hostname);
    for (const [from, to] of [[near, far], [far, near]]) {
      open.add(from);
      from.pipe(to);
      from.on('error', () => {});
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cut = () => {
    whole = false;
    for (const socket of open) socket.destroy();
  };
  t.after(() => {
    cut();
    server.close();
  });
  return { base: `http://127.0.0.1:${server.address().port}`, cut, mend: () => (whole = true) };
}
