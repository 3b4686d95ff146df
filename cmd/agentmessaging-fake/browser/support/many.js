// Many calls in little time: written one after the other into one connection,
// as HTTP/1.1 allows.
import { connect } from 'node:net';

const answer = 'HTTP/1.1 200 OK';

export function many(fake, n) {
  const { hostname, port, host } = new URL(fake.base);
  const call = `GET /v1/status HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${fake.key}\r\n\r\n`;
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(call.repeat(n)));
    let left = n;
    let rest = '';
    socket.setEncoding('latin1');
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      const parts = (rest + chunk).split(answer);
      left -= parts.length - 1;
      rest = parts.at(-1).slice(-answer.length + 1);
      if (left === 0) socket.destroy();
    });
    socket.on('close', () => (left === 0 ? resolve() : reject(new Error(`${left} of ${n} calls were not answered`))));
  });
}
