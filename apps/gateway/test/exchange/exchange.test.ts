import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { spoolBody } from '../../src/body/spool.ts';
import { attachBody, createExchange, isOpen } from '../../src/exchange/exchange.ts';

it('a body that is complete only after its connection has closed is freed, even if its answer waited behind another one', async () => {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const exchange = createExchange('id-1', request, response, false);
  // connections.ts emits this event: Node does not, for a response that has no connection yet.
  response.destroy();
  response.emit('close');
  const body = await spoolBody(Readable.from([Buffer.from('abc')]), { maxBytes: 10 });
  attachBody(exchange, body);
  expect(isOpen(exchange)).toBe(false);
  expect(() => body.open()).toThrow('disposed');
});
