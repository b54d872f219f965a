// An upstream to try things with: it answers every request with what it received. Put your own API in its place.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  const { method, url, headers } = request;
  request.resume().on('end', () => {
    const answer = { method, url, requestId: headers['x-request-id'], client: headers['x-forwarded-for'] };
    response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(answer)}\n`);
  });
});
server.listen(Number(process.env.PORT ?? 9000));
process.on('SIGTERM', () => server.close());
