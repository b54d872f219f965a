import type { IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import formidable from 'formidable';
import { afterEach, describe, expect, it } from 'vitest';
import type { SuiteServer } from '../../support/adapter-suite/subject.ts';
import {
  behind,
  FOUND,
  form,
  MULTIPART_PARSERS,
  ofMulter,
  onApp,
  onFastifyApp,
  onServer,
  type Parse,
  upload,
} from '../../support/parsing-servers.ts';
import { HTTP1, HTTP2, type Start, type Version } from '../../support/versions.ts';

const open: SuiteServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** Posts a body with or without its length. */
async function post(server: SuiteServer, body: FormData | string, headers: Record<string, string>, isStated = true) {
  const whole = new Response(body);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const request = new Request(`http://127.0.0.1:${server.port}/x`, {
    method: 'POST',
    body: isStated ? bytes : new Blob([bytes]).stream(),
    duplex: 'half',
    headers: {
      'content-type': whole.headers.get('content-type') as string,
      ...(isStated && { 'content-length': String(bytes.length) }),
      ...headers,
    },
  });
  return (server.fetch ?? fetch)(request);
}

async function start(how: Start, version: Version): Promise<SuiteServer> {
  const server = await how(version);
  open.push(server);
  return server;
}

/** Checks that a form with a file is parsed, and that another boundary does not make it another request. */
async function expectForm(server: SuiteServer, isStated: boolean): Promise<void> {
  const ask = async (key: Record<string, string>) => {
    const response = await post(server, form(), key, isStated);
    return {
      found: await response.json(),
      replayed: response.headers.get('idempotency-replayed'),
      remaining: response.headers.get('x-ratelimit-remaining'),
    };
  };
  expect(await ask({})).toEqual({ found: FOUND, replayed: null, remaining: '999' });
  expect(await ask({ 'idempotency-key': 'k' })).toEqual({ found: FOUND, replayed: null, remaining: '998' });
  // FormData makes a new boundary each time.
  expect(await ask({ 'idempotency-key': 'k' })).toEqual({ found: FOUND, replayed: 'true', remaining: null });
}

async function expectParsed(server: SuiteServer, type: string, body: string): Promise<void> {
  for (const key of [{}, { 'idempotency-key': type }]) {
    const response = await post(server, body, { 'content-type': type, ...key });
    expect(await response.json()).toEqual({ account_id: 'a' });
  }
}

const JSON_BODY = ['application/json', '{"account_id":"a"}'] as const;
const FORM_BODY = ['application/x-www-form-urlencoded', 'account_id=a'] as const;
const bodyOf = ({ body }: { body?: unknown }) => body;
const urlencoded = () => express.urlencoded({ extended: true });

/**
 * These detect a body by `content-length` or `transfer-encoding`. HTTP/2 does not have the second. If the client does
 * not send the first, they find no body, with or without a gate.
 */
const WANTS_LENGTH = /multer|formidable/;

describe.each([
  ['HTTP/1', HTTP1],
  ['HTTP/2', HTTP2],
])(
  'I13: over %s, behind a gate that reads account and fingerprint from the body, the body is untouched for',
  (_, version) => {
    it.each(Object.entries(MULTIPART_PARSERS))('%s', async (name, how) => {
      await expectForm(await start(how, version), true);
      if (!version.http2 || !WANTS_LENGTH.test(name)) await expectForm(await start(how, version), false);
    });

    it('express.json and express.urlencoded without an Express application', async () => {
      await expectParsed(await start(onServer(behind(express.json, bodyOf)), version), ...JSON_BODY);
      await expectParsed(await start(onServer(behind(urlencoded, bodyOf)), version), ...FORM_BODY);
    });

    it('the parsers of Fastify', async () => {
      await expectParsed(
        await start(
          onFastifyApp({}, async ({ body }) => body),
          version,
        ),
        ...JSON_BODY,
      );
    });
  },
);

describe('over HTTP/2, with and without a gate, a body without content-length is not read by', () => {
  it.each<[string, Parse, FormData | string, string?]>([
    // @koa/multer as well, because it is multer.
    ['multer', behind(upload, ({ body, file }) => body ?? file), form()],
    ['express.json', behind(express.json, bodyOf), JSON_BODY[1], JSON_BODY[0]],
    // formidable throws at the first piece, where a test cannot catch it. So the test only checks what it expects.
    ['formidable', ({ headers }) => expectedByFormidable(headers), form()],
  ])('%s', async (_name, parse, body, type) => {
    const answer: Parse = async (request, response) => {
      const found = await parse(request, response);
      return { found, left: (await buffer(request)).length > 0 };
    };
    const bare: Start = ({ serve }) =>
      serve(async (request, response) => void response.end(JSON.stringify(await answer(request, response))));
    for (const how of [bare, onServer(answer)]) {
      const response = await post(await start(how, HTTP2), body, type ? { 'content-type': type } : {}, false);
      expect(await response.json()).toEqual({ left: true });
    }
  });
});

/** The number of bytes, or undefined if it expects none. */
async function expectedByFormidable(headers: IncomingHttpHeaders): Promise<number | undefined> {
  const parser = formidable({}) as unknown as {
    readonly bytesExpected: number;
    writeHeaders(headers: IncomingHttpHeaders): Promise<void>;
  };
  await parser.writeHeaders(headers);
  return parser.bytesExpected || undefined;
}

/** Express serves only HTTP/1. */
describe.each([
  ['express 5', express],
  ['express 4', express4 as typeof express],
])('I13: behind such a gate in %s the body is untouched for', (_, create) => {
  it('multer', async () => {
    const app = onApp(create, upload(), (request, response) => void response.json(ofMulter(request)));
    await expectForm(await start(app, HTTP1), true);
  });

  it('express.json and express.urlencoded', async () => {
    const echo: express.RequestHandler = ({ body }, response) => void response.json(body);
    const server = await start(onApp(create, create.json(), create.urlencoded({ extended: true }), echo), HTTP1);
    await expectParsed(server, ...JSON_BODY);
    await expectParsed(server, ...FORM_BODY);
    const without = await post(server, '{}', {});
    expect([without.status, ((await without.json()) as { type: string }).type]).toEqual([
      422,
      'errors/unprocessable_entity',
    ]);
  });
});
