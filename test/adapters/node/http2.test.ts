import { connect, constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { type Http2Handler, idempotentRequest, withHeadgate } from '../../../src/adapters/node.ts';
import { adapterSuite } from '../../support/adapter-suite/suite.ts';
import { listenHttp2 } from '../../support/http2.ts';
import { keyedServers } from '../../support/keyed-server.ts';
import { bodyOf, headerOf, writeNode } from '../../support/suite-node.ts';

adapterSuite<Http2ServerRequest>(
  { describe, it },
  {
    name: 'node:http2',
    header: headerOf,
    route: ({ method }) => `${method} /things/:id`,
    idempotentRequest,
    listen({ gates, routes, handle }) {
      const handler: Http2Handler = (request, response) => {
        handle({ body: () => bodyOf(request) }, (answer) => writeNode(response, answer)).catch(() => {
          if (!response.headersSent) response.writeHead(500).end('failed');
        });
      };
      const [things, priced] = routes.map(({ options }) =>
        gates.reduceRight((inner, gate) => withHeadgate(gate, inner, options), handler),
      );
      return listenHttp2((request: Http2ServerRequest, response: Http2ServerResponse) =>
        (request.url.startsWith('/priced') ? priced : things)?.(request, response),
      );
    },
  },
);

const keyed = keyedServers();

/** Serves, and sends requests with Node's own client, which shows trailers and how a stream was closed. */
async function serve(handler: (request: Http2ServerRequest, response: Http2ServerResponse) => unknown) {
  const server = await keyed.serve(handler as never, { http2: true });
  return {
    server,
    async ask(fields: Record<string, string | string[]> = {}) {
      const client = connect(`http://127.0.0.1:${server.port}`);
      const head = { ':method': 'POST', ':path': '/', 'x-account': 'a', 'idempotency-key': 'k', ...fields };
      const stream = client.request(head);
      let [text, answer, trailers]: [string, Record<string, unknown>, unknown] = ['', {}, undefined];
      stream.on('data', (chunk) => {
        text += chunk;
      });
      stream.on('response', (given) => {
        answer = given;
      });
      stream.on('trailers', (given) => {
        trailers = { ...given };
      });
      stream.on('error', () => {});
      stream.end('{}');
      await new Promise((resolve) => stream.on('close', resolve));
      client.destroy();
      return { text, answer, trailers, code: stream.rstCode };
    },
  };
}

describe('over HTTP/2', () => {
  it('trailers are sent unchanged; a replay has none', async () => {
    const { server, ask } = await serve((_, response) => {
      response.write('half, ');
      response.addTrailers({ 'x-sum': '7' });
      response.end('whole');
    });
    expect(await ask()).toMatchObject({ text: 'half, whole', trailers: { 'x-sum': '7' } });
    expect(await ask()).toMatchObject({ text: 'half, whole', trailers: undefined });
    expect(server.runs).toBe(1);
  });

  it('connection fields, which HTTP/2 does not have, are not sent and not stored', async () => {
    const { ask } = await serve((_, response) => {
      response.setHeader('connection', 'close');
      response.setHeader('x-own', '1');
      response.end('ok');
    });
    for (const { answer } of [await ask(), await ask()]) {
      expect([answer['x-own'], answer.connection]).toEqual(['1', undefined]);
    }
  });

  it.each([
    ['by the handler', (response: Http2ServerResponse) => void response.destroy(new Error('broken'))],
    ['without a reason', (response: Http2ServerResponse) => void (response as { destroy(): void }).destroy()],
  ])('I7: an answer that is broken off %s does not look complete to its client', async (_, breakOff) => {
    const { server, ask } = await serve((_request, response) => {
      response.write('one ');
      response.write('two ');
      setTimeout(() => breakOff(response), 20);
    });
    expect((await ask()).code).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    expect((await ask()).answer[':status']).toBe(409);
    expect(server.runs).toBe(1);
  });

  it('I1: two Idempotency-Key fields are rejected with 422', async () => {
    const { server, ask } = await serve((_, response) => response.end('ok'));
    expect((await ask({ 'idempotency-key': ['a', 'b'] })).answer[':status']).toBe(422);
    expect(server.runs).toBe(0);
  });
});
