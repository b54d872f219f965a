// A server process of `npm run bench:http`: bare node:http, or the same behind headgate. Tells its port and, when asked, its CPU time.
import { createServer } from 'node:http';
import { createGate, createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { withHeadgate } from 'headgate/node';

const handler = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '2' });
  response.end('ok');
};

function limited() {
  const windows = ['1000000000/1m', '1000000000/1d'];
  const limiter = createLimiter({
    store: createMemoryStore(),
    limits: { allMethods: windows, routes: { 'GET /': windows } },
  });
  const gate = createGate({ limiter, account: (request) => request.headers['x-account'], route: () => 'GET /' });
  return withHeadgate(gate, handler);
}

const server = createServer(process.argv[2] === 'headgate' ? limited() : handler);
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => process.send({ cpu: process.cpuUsage() }));
