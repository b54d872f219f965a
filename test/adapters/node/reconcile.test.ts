import type { IncomingMessage } from 'node:http';
import { eventually } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { idempotentRequest } from '../../../src/adapters/node.ts';
import type { KeptResult } from '../../../src/core/claim.ts';
import { createProblem, problemReply, type ResponseToStore, storedResponse } from '../../../src/http/index.ts';
import type { IdempotencyEvent, Reconcile, SettingsInput } from '../../../src/idempotency/index.ts';
import type { GateOptions } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { keyedServers } from '../../support/keyed-server.ts';

const { serve } = keyedServers();

interface Options {
  readonly settings?: SettingsInput;
  readonly gate?: Partial<GateOptions<IncomingMessage>>;
}

/** A server on which a retry finds the claim of a process that died in its handler, after dispatch. */
async function serveOrphan(reconcile: Reconcile<KeptResult>, { settings, gate }: Options = {}) {
  let now = 0;
  const claims = createMemoryClaimStore({ clock: { now: () => now } });
  const dead = await serve(() => {}, { claims });
  dead.post().catch(() => {});
  await eventually(() => dead.runs === 1, 'the handler runs');
  dead.line.always = 'hung';
  now += 30_001;
  const reconciled: IdempotencyEvent[] = [];
  const onEvent = (event: IdempotencyEvent) => void (event.type === 'reconciled' && reconciled.push(event));
  const server = await serve((_request, response) => response.end('executed again'), {
    claims,
    settings: { onEvent } as SettingsInput,
    gate: {
      idempotent: (request) =>
        idempotentRequest(request, { scope: 'app_1', settings: { onOrphan: 'reconcile', reconcile, ...settings } }),
      ...gate,
    },
  });
  return { server, reconciled };
}

const done = (response: ResponseToStore) => () => ({ done: true, result: storedResponse(response) }) as const;
const OFF = ['date', 'connection', 'keep-alive'];
const fieldsOf = (headers: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OFF.includes(name)));

describe('I9: reconcile over HTTP', () => {
  it.each<[string, ResponseToStore, Record<string, unknown>, string]>([
    [
      'text',
      { status: 201, headers: { 'Content-Type': 'application/json', 'X-Id': ['7', '8'] }, body: '{"to":"ä"}' },
      { 'content-type': 'application/json', 'x-id': '7, 8', 'content-length': '11' },
      '{"to":"ä"}',
    ],
    ['bytes', { status: 500, body: Uint8Array.of(0xff, 0, 0x80) }, { 'content-length': '3' }, '\xff\x00\x80'],
    ['no body', { status: 204, headers: { location: '/mails/7' } }, { location: '/mails/7' }, ''],
    [
      'fields that are never stored',
      {
        status: 200,
        headers: {
          'content-length': '900',
          'transfer-encoding': 'chunked',
          'set-cookie': ['a=1', 'b=2'],
          'x-ratelimit-limit': '5',
          'retry-after': '1',
          'idempotency-replayed': 'false',
          connection: 'x-hop',
          'x-hop': '1',
          etag: '"e"',
        },
        body: 'sent',
      },
      { etag: '"e"', 'content-length': '4' },
      'sent',
    ],
  ])(
    '%s: every retry gets the response of the callback, and nothing is executed',
    async (_, response, fields, body) => {
      let asked = 0;
      const { server, reconciled } = await serveOrphan(() => {
        asked++;
        return done(response)();
      });
      for (let retry = 1; retry <= 2; retry++) {
        const reply = await server.post();
        expect(reply.status).toBe(response.status);
        expect(fieldsOf(reply.headers)).toEqual({ ...fields, 'idempotency-replayed': 'true' });
        expect(reply.body.equals(Buffer.from(body, response.body instanceof Uint8Array ? 'latin1' : 'utf8'))).toBe(
          true,
        );
      }
      expect([server.runs, asked]).toEqual([0, 1]);
      expect(reconciled).toEqual([expect.objectContaining({ answer: 'done' })]);
    },
  );

  it('I4: the fields that keepsField of the gate leaves out are not stored either', async () => {
    const headers = { 'X-Internal': '1', etag: '"e"' };
    const gate = { keepsField: (name: string) => name !== 'x-internal' };
    const { server } = await serveOrphan(done({ status: 200, headers }), { gate });
    const reply = await server.post();
    expect([reply.headers['x-internal'], reply.headers.etag]).toEqual([undefined, '"e"']);
  });

  it('I7: of a body over maxKeptBytes only the status is stored', async () => {
    const options = { settings: { maxKeptBytes: 4 } };
    const { server: fits } = await serveOrphan(done({ status: 201, body: 'sent' }), options);
    expect((await fits.post()).text).toBe('sent');
    const { server } = await serveOrphan(done({ status: 201, body: 'sent!' }), options);
    for (let retry = 1; retry <= 2; retry++) {
      const { status, text } = await server.post();
      expect([status, JSON.parse(text).type, JSON.parse(text).detail]).toEqual([
        409,
        'errors/already_used',
        expect.stringContaining('completed with status 201'),
      ]);
    }
    expect(server.runs).toBe(0);
  });

  it('if only the status is known, retries get 409 errors/already_used with that status', async () => {
    const { server } = await serveOrphan(() => ({ done: true, result: { status: '202', value: undefined } }));
    const { status, text } = await server.post();
    expect([status, JSON.parse(text).detail]).toEqual([409, expect.stringContaining('completed with status 202')]);
  });

  it.each<[string, unknown]>([
    ['a response that storedResponse has not written', { status: 201, headers: {}, body: 'sent' }],
    ['a value of another codec', { status: 'ok', value: '{"id":7}' }],
    ['a text', 'sent'],
    ['null', null],
  ])('%s stores nothing: the outcome stays unknown, and the event has the error', async (_, result) => {
    const { server, reconciled } = await serveOrphan(() => ({ done: true, result }) as never);
    const { status, text } = await server.post();
    expect([status, JSON.parse(text).type, server.runs]).toEqual([409, 'errors/conflict', 0]);
    const error = new TypeError('reconcile must return a result of storedResponse() from headgate/http');
    expect(reconciled).toEqual([expect.objectContaining({ answer: 'unknown', error })]);
  });

  it('not done: the retry is executed', async () => {
    const { server } = await serveOrphan(() => ({ done: false }));
    expect([(await server.post()).text, server.runs]).toEqual(['executed again', 1]);
  });

  it('an operator can complete the key with such a response, an error answer too', async () => {
    const { server } = await serveOrphan(() => 'unknown');
    const reply = problemReply(createProblem(503, 'errors/service_unavailable', 'The provider lost it.'));
    const id = { scope: 'app_1', key: 'k' };
    expect(await server.idempotency.completeWith(id, storedResponse(reply))).toBe('completed');
    const { status, headers, text } = await server.post();
    expect([status, headers['content-type'], headers['idempotency-replayed'], text]).toEqual([
      503,
      'application/json',
      'true',
      reply.body,
    ]);
  });
});
