import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type * as Graph from '@microsoft/microsoft-graph-types';
import { afterAll } from 'vitest';
import { watchExchanges } from '../exchanges.ts';
import { secret } from '../secret.ts';
import { GraphContract } from './contract.ts';
import { type Item, Mailbox } from './mailbox.ts';

/** "The maximum size of a REST request is 4 MB." */
const MAX_REQUEST = 4 * 1024 * 1024;
/** "Use this approach to attach a file if the file size is between 3 MB and 150 MB." */
const SMALLEST_UPLOAD = 3 * 1024 * 1024;

/** The fault of one request. */
export type Trouble =
  /** Graph answers an error. `does`: it does the work all the same. */
  | { readonly status: number; readonly code: string; readonly retryAfter?: number; readonly does?: boolean }
  /** The connection ends before Graph does the work, or before it answers. */
  | { readonly cut: 'before' | 'after' };

/** One request, as Graph received it. */
export interface SeenRequest {
  /** `me.CreateMessages`, as in Microsoft's description; `upload` for a piece of a file. */
  readonly operation: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** A server that behaves as Microsoft Graph does. Each exchange is checked by Microsoft's own description. */
export interface GraphDouble {
  /** `http://127.0.0.1:<port>/v1.0` */
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** The differences between exchanges and Microsoft's description, or between requests and its reference. */
  readonly faults: readonly string[];
  /** A new mailbox. */
  mailbox(address: string): Mailbox;
  /** A new access token for a mailbox. */
  tokenFor(mailbox: Mailbox): string;
  /** The next request of an operation meets a trouble. Several are met one after the other. */
  trouble(operation: string, ...troubles: readonly Trouble[]): void;
  /** Forgets the troubles that were not met. */
  calm(): void;
  /** The next request of an operation is answered after this is done. */
  before(operation: string, act: () => Promise<void> | void): void;
}

/** The answer to a request of an operation: a status, and JSON. */
interface Answer {
  readonly status: number;
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(code);
  }
}

interface Call extends SeenRequest {
  readonly mailbox: Mailbox;
  readonly query: URLSearchParams;
  readonly id: string;
}

/** Starts a server. It ends after the test file, which fails if an exchange was not as Microsoft describes it. */
export async function startGraph(): Promise<GraphDouble> {
  const contract = new GraphContract();
  const [seen, faults]: [SeenRequest[], string[]] = [[], []];
  const [troubles, acts] = [new Map<string, Trouble[]>(), new Map<string, (() => Promise<void> | void)[]>()];
  const tokens = new Map<string, Mailbox>();
  const uploads = new Map<string, { readonly item: Item; readonly file: Graph.AttachmentItem; received: Buffer }>();

  const server = createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => {
      // The client left in the middle of its request.
      if (!request.complete) return;
      faults.push(`the double failed: ${String(error instanceof Error ? error.stack : error)}`);
      response.destroy();
    });
  });
  watchExchanges(server, (exchange) => {
    if (exchange.url.startsWith('/v1.0/')) faults.push(...contract.check(exchange).faults);
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://graph');
    const path = decodeURIComponent(pathname.replace(/^\/v1\.0/, ''));
    const route = ROUTES.find(({ method, pattern }) => method === request.method && pattern.test(path));
    if (route === undefined) throw new Error(`no route ${request.method} ${path}`);
    const { operation } = route;
    seen.push({ operation, path, headers: request.headers, body });
    await acts.get(operation)?.shift()?.();
    const trouble = troubles.get(operation)?.shift();
    if (trouble !== undefined && 'cut' in trouble && trouble.cut === 'before') return void response.destroy();
    const act = (): Answer => {
      const [, id = ''] = route.pattern.exec(path) ?? [];
      const call = { operation, path, headers: request.headers, body, query: searchParams, id };
      if (operation === 'upload') return upload(call);
      return route.answer({ ...call, mailbox: authenticate(request) });
    };
    const does = trouble === undefined || 'cut' in trouble || trouble.does === true;
    const answer = does ? attempt(act) : undefined;
    if (trouble !== undefined && 'cut' in trouble) return void response.destroy();
    if (trouble === undefined && answer !== undefined) return send(response, answer);
    if (trouble !== undefined) {
      const headers = trouble.retryAfter === undefined ? {} : { 'retry-after': String(trouble.retryAfter) };
      send(response, { ...errorAnswer(trouble.status, trouble.code), headers });
    }
  }

  function authenticate({ headers }: IncomingMessage): Mailbox {
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
    const mailbox = tokens.get(token);
    if (mailbox === undefined || !mailbox.tokens.has(token)) throw new Refusal(401, 'InvalidAuthenticationToken');
    if (!headers.prefer?.includes('IdType="ImmutableId"')) faults.push('a request does not ask for immutable ids');
    return mailbox;
  }

  /** Only an owner who gave the permission can read and write. */
  const needs = ({ mailbox }: Call, permission: string): void => {
    if (!mailbox.permissions.has(permission)) throw new Refusal(403, 'ErrorAccessDenied');
  };
  const find = (call: Call): Item => {
    needs(call, 'Mail.ReadWrite');
    if (!/^[\w=-]{20,}$/.test(call.id)) throw new Refusal(400, 'ErrorInvalidIdMalformed');
    const item = call.mailbox.find(call.id);
    if (item === undefined) throw new Refusal(404, 'ErrorItemNotFound');
    return item;
  };
  const json = <Value>({ body }: SeenRequest): Value => JSON.parse(body.toString()) as Value;
  const mimeOf = ({ headers, body }: SeenRequest): Buffer => {
    if (headers['content-type'] !== 'text/plain') throw new Refusal(400, 'UnableToDeserializePostBody');
    return Buffer.from(body.toString(), 'base64');
  };

  const ROUTES: readonly {
    readonly method: string;
    readonly pattern: RegExp;
    readonly operation: string;
    answer(call: Call): Answer;
  }[] = [
    {
      ...{ method: 'POST', pattern: /^\/me\/messages$/, operation: 'me.CreateMessages' },
      answer: (call) => {
        needs(call, 'Mail.ReadWrite');
        return { status: 201, json: call.mailbox.create(mimeOf(call)).shown() };
      },
    },
    {
      ...{ method: 'GET', pattern: /^\/me\/messages\/([^/]+)$/, operation: 'me.GetMessages' },
      answer: (call) => {
        const item = find(call);
        if (item.isDraft) item.shownAsDraft++;
        return { status: 200, json: selected(item.shown(), call.query) };
      },
    },
    {
      ...{ method: 'PATCH', pattern: /^\/me\/messages\/([^/]+)$/, operation: 'me.UpdateMessages' },
      answer: (call) => {
        const item = find(call);
        item.change(json<Graph.Message>(call));
        return { status: 200, json: item.shown() };
      },
    },
    {
      ...{ method: 'DELETE', pattern: /^\/me\/messages\/([^/]+)$/, operation: 'me.DeleteMessages' },
      answer: (call) => {
        const item = find(call);
        const match = call.headers['if-match'];
        if (match !== undefined && match !== item.etag) throw new Refusal(412, 'ErrorIrresolvableConflict');
        call.mailbox.delete(item);
        return { status: 204 };
      },
    },
    {
      ...{
        method: 'POST',
        pattern: /^\/me\/messages\/([^/]+)\/attachments$/,
        operation: 'me.messages.CreateAttachments',
      },
      answer: (call) => {
        const file = json<Graph.FileAttachment & { contentBytes: string }>(call);
        const content = Buffer.from(file.contentBytes, 'base64');
        return { status: 201, json: find(call).attach(file, content) };
      },
    },
    {
      ...{
        method: 'POST',
        pattern: /^\/me\/messages\/([^/]+)\/attachments\/(?:microsoft\.graph\.)?createUploadSession$/,
      },
      operation: 'me.messages.message.attachments.createUploadSession',
      answer: (call) => {
        const { AttachmentItem: file } = json<{ AttachmentItem: Graph.AttachmentItem }>(call);
        if ((file.size ?? 0) < SMALLEST_UPLOAD)
          throw new Refusal(400, 'ErrorAttachmentSizeShouldNotBeLessThanMinimumSize');
        const token = randomUUID();
        uploads.set(token, { item: find(call), file, received: Buffer.alloc(0) });
        return { status: 201, json: sessionOf(token, 0) };
      },
    },
    {
      ...{ method: 'POST', pattern: /^\/me\/messages\/([^/]+)\/(?:microsoft\.graph\.)?send$/ },
      operation: 'me.messages.message.send',
      answer: (call) => {
        const item = find(call);
        // Microsoft does not document how Graph treats a request to send an email that is not a draft: it might send it
        // again. Of two requests at the same time, neither can know it.
        if (item.shownAsDraft-- <= 0) faults.push('the provider sent an email without asking whether it is a draft');
        if (!item.isDraft) throw new Refusal(404, 'ErrorItemNotFound');
        deliver(() => call.mailbox.send(item));
        return { status: 202 };
      },
    },
    {
      ...{ method: 'POST', pattern: /^\/me\/(?:microsoft\.graph\.)?sendMail$/, operation: 'me.sendMail' },
      answer: (call) => {
        needs(call, 'Mail.Send');
        const mime = mimeOf(call);
        deliver(() => call.mailbox.send(call.mailbox.create(mime)));
        return { status: 202 };
      },
    },
    {
      ...{ method: 'POST', pattern: /^\/me\/(?:microsoft\.graph\.)?translateExchangeIds$/ },
      operation: 'me.translateExchangeIds',
      answer: (call) => {
        needs(call, 'Mail.ReadWrite');
        const { InputIds: ids, TargetIdType: target } = json<{ InputIds: string[]; TargetIdType: string }>(call);
        const value = ids.map((sourceId) => {
          const item = call.mailbox.find(sourceId);
          if (item === undefined)
            return { sourceId, errorDetails: { code: 'ErrorInvalidId', message: 'no such item' } };
          return { sourceId, targetId: target === 'restId' ? item.restId : item.id };
        });
        return { status: 200, json: { value } };
      },
    },
    {
      ...{ method: 'GET', pattern: /^\/me\/mailFolders\/([^/]+)\/messages$/, operation: 'me.mailFolders.ListMessages' },
      answer: (call) => {
        needs(call, 'Mail.ReadWrite');
        const [, messageId = ''] = /^internetMessageId eq '(.*)'$/.exec(call.query.get('$filter') ?? '') ?? [];
        const found = call.mailbox.list(call.id).filter((item) => item.messageId === messageId.replaceAll("''", "'"));
        return { status: 200, json: { value: found.map((item) => selected(item.shown(), call.query)) } };
      },
    },
    {
      ...{ method: 'GET', pattern: /^\/me\/mailFolders\/([^/]+)$/, operation: 'me.GetMailFolders' },
      answer: (call) => {
        needs(call, 'Mail.ReadWrite');
        return { status: 200, json: { id: call.mailbox.folder(call.id) } };
      },
    },
    // Graph makes the address, so the description does not contain it.
    {
      ...{ method: 'PUT', pattern: /^\/upload\/([^/]+)$/, operation: 'upload' },
      answer: () => ({ status: 500 }),
    },
  ];

  function attempt(act: () => Answer): Answer {
    try {
      const answer = act();
      return answer;
    } catch (error) {
      if (error instanceof Refusal) return errorAnswer(error.status, error.code);
      throw error;
    }
  }

  function deliver(send: () => string | undefined): void {
    const refused = send();
    if (refused !== undefined) throw new Refusal(refused === 'ErrorSendAsDenied' ? 403 : 400, refused);
  }

  function upload({ id, headers, body }: Omit<Call, 'mailbox'>): Answer {
    if (headers.authorization !== undefined) faults.push('a piece of a file is sent with an access token');
    const session = uploads.get(id);
    const [, start, end, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
    if (session === undefined) throw new Refusal(404, 'ErrorItemNotFound');
    const { item, file, received } = session;
    const isWhole = Number(end) - Number(start) + 1 === body.length && Number(total) === file.size;
    if (!isWhole || Number(start) !== received.length || body.length > MAX_REQUEST)
      throw new Refusal(400, 'ErrorInvalidRange');
    session.received = Buffer.concat([received, body]);
    if (session.received.length < Number(total)) return { status: 200, json: sessionOf(id, session.received.length) };
    uploads.delete(id);
    item.attach(file, session.received);
    return { status: 201, headers: { location: `${origin}/v1.0/me/messages/${item.id}/attachments/1` } };
  }

  const sessionOf = (token: string, next: number) => ({
    ...(next === 0 ? { uploadUrl: `${origin}/upload/${token}?authtoken=${token}` } : {}),
    expirationDateTime: '2099-01-01T00:00:00Z',
    nextExpectedRanges: [next === 0 ? '0-' : String(next)],
  });

  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  endWithTestFile(server, faults);

  const queue = <Value>(map: Map<string, Value[]>, operation: string, ...values: readonly Value[]): void => {
    if (!ROUTES.some((route) => route.operation === operation)) throw new Error(`no operation ${operation}`);
    map.set(operation, [...(map.get(operation) ?? []), ...values]);
  };
  const tokenFor = (mailbox: Mailbox): string => {
    const token = `EwB${secret()}`;
    tokens.set(token, mailbox);
    mailbox.tokens.add(token);
    return token;
  };
  return {
    url: `${origin}/v1.0`,
    ...{ seen, faults, tokenFor },
    mailbox: (address) => new Mailbox(address),
    trouble: (operation, ...given) => queue(troubles, operation, ...given),
    calm: () => troubles.clear(),
    before: (operation, act) => queue(acts, operation, act),
  };
}

function endWithTestFile(server: Server, faults: readonly string[]): void {
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    if (faults.length > 0) throw new Error(`Not as Microsoft describes it:\n  ${faults.join('\n  ')}`);
  });
}

/** A request that is larger than Graph allows is read to its end, so that the client gets the answer. */
async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const errorAnswer = (status: number, code: string): Answer => ({
  status,
  json: {
    error: {
      code,
      message: `The double answers ${code}.`,
      innererror: { Date: '2026-01-01T00:00:00Z', 'request-id': randomUUID() },
    },
  },
});

function selected(message: Graph.Message, query: URLSearchParams): unknown {
  const names = query.get('$select')?.split(',');
  if (names === undefined) return message;
  return Object.fromEntries(
    Object.entries(message).filter(([name]) => name === 'id' || name === '@odata.etag' || names.includes(name)),
  );
}

function send(response: ServerResponse, { status, json, headers = {} }: Answer): void {
  const body = json === undefined ? undefined : JSON.stringify(json);
  response.writeHead(status, {
    'request-id': randomUUID(),
    ...(body === undefined ? {} : { 'content-type': 'application/json; odata.metadata=minimal' }),
    ...headers,
  });
  response.end(body);
}
