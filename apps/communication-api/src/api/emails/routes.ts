import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { headgate, passageOf } from 'headgate/fastify';
import { readIdempotencyKey } from 'headgate/http';
import { z } from 'zod';
import { EMAIL_STATES, shownState } from '../../domain/email-state.ts';
import { isId } from '../../domain/ids.ts';
import { ServiceError } from '../../domain/service-error.ts';
import { type SendResult, sentBody } from '../../journal/send-outcome.ts';
import type { Send } from '../../journal/send-records.ts';
import type { Attachment } from '../../mail/mail.ts';
import { ProviderError } from '../../providers/provider.ts';
import type { Rooms } from '../../rooms.ts';
import type { HitCounts } from '../../tracking/tracking.ts';
import { accessibleAccount } from '../accounts/accessible-account.ts';
import { callerOf } from '../authenticate.ts';
import { FormFields } from '../form.ts';
import { createMethodsGate } from '../methods-gate.ts';
import { listAnswer, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';
import { mediaType, readIntake } from './intake.ts';
import { readRest } from './rest-of-body.ts';
import { type EmailRequest, email, emailOrList, emailRequest, emailSent } from './schema.ts';
import { sendEmail } from './send.ts';

/** What `readIdempotencyKey` accepts: no other key can be found. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;
const KEY_FORM = 'must be 1 to 255 printable ASCII characters';

export const emailRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  await app.register(sendRoute, { rooms });
  await app.register(readRoutes, { rooms });
};

/** `POST /api/v1/emails`: the key, the account, the fields, the gate, and the handler, in this order. */
const sendRoute: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { config, spool, envelope, accounts } = rooms;
  const options = {
    spool,
    secret: envelope.derive('fingerprint'),
    maxBytes: config.MAX_BODY_BYTES,
    idleMs: config.BODY_TIMEOUT_MS,
  };
  app.decorateRequest('account', null);
  app.decorateRequest('intake', null);
  app.decorateRequest('send', null);
  app.decorateRequest('unknownOutcome', null);
  app.decorateRequest('sending', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['multipart/form-data', 'application/json', 'application/x-www-form-urlencoded'],
    async (request: FastifyRequest, body: FastifyRequest['raw']) => {
      const { method, url, headers } = request;
      const intake = await readIntake({ method, url, headers, body }, options);
      // The connection is already closed, so the hook that frees the files does not run again.
      if (request.socket.destroyed) {
        await intake.close();
        throw disconnected();
      }
      request.intake = intake;
      return intake.fields;
    },
  );
  await app.register(headgate(createMethodsGate(rooms), { hook: 'preHandler', readAhead: false }));

  app.post(
    '/api/v1/emails',
    {
      schema: {
        operationId: 'sendEmail',
        summary: 'Send an email',
        tags: ['Emails'],
        consumes: ['multipart/form-data', 'application/json', 'application/x-www-form-urlencoded'],
        headers: z.looseObject({
          'idempotency-key': z
            .string()
            .optional()
            .meta({ minLength: 1, maxLength: 255 })
            .describe('1 to 255 printable characters. A retry with the same key gets the result of the first request.'),
        }),
        body: emailRequest,
        response: {
          201: emailSent,
          ...problems(404, 408, 409, 504),
        },
      },
      preValidation: async (request) => {
        const id = accountIdOf(request.body);
        if (id === undefined) return;
        request.account = await accessibleAccount(accounts, callerOf(request), id, 'findRecent');
        request.logged = { account: request.account.id };
      },
    },
    async (request, reply) => {
      const sending = handle(rooms, request, reply);
      request.sending = sending;
      try {
        const result = await sending;
        request.logged = { ...request.logged, email: result.id };
        return await reply.code(201).send(sentBody(result));
      } catch (error) {
        const instead = reachedProvider(error) ? undefined : await passageOf(reply)?.abandon();
        if (instead === undefined) throw error;
        // Meanwhile another attempt stored an outcome under the key.
        const { status, headers, body } = instead;
        return reply
          .code(status as 201)
          .headers(headers)
          .serializer((payload: string) => payload)
          .send(body as never);
      }
    },
  );

  app.addHook('onRequest', async (request, reply) => {
    request.afterwards = [];
    // The send continues if the client disconnects, so its files are freed after both end.
    const free = async (): Promise<void> => {
      // A handler that did not begin yet will find the files closed.
      if (request.sending !== null) await Promise.allSettled([request.sending]);
      await request.intake?.close();
      for (const work of request.afterwards) await work();
    };
    reply.raw.once('close', () => void free());
  });
  app.addHook('onSend', async (request, reply) => {
    const { raw } = request;
    if (raw.complete) return;
    // The request was refused before its body was read: the API key is wrong, for example. After a 408 nothing more
    // arrives.
    if (!raw.readableDidRead && reply.statusCode !== 408)
      await readRest(raw.iterator({ destroyOnReturn: false }), config.MAX_BODY_BYTES);
    if (raw.complete) return;
    // The rest of the body would be taken for the next request.
    reply.header('connection', 'close');
    closeLater(raw.socket);
  });
};

const LINGER_MS = 1_000;

/**
 * Ends a connection whose client is still sending. Node would destroy the connection at the end of the answer, and the
 * system would then drop the bytes that the client did not read yet: the answer.
 */
function closeLater(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

const disconnected = (): ServiceError =>
  new ServiceError(400, 'errors/malformed_request', 'The client has ended the connection.');

const findOrListQuery = z.strictObject({
  ...pageQuery,
  status: z.enum(EMAIL_STATES).optional().describe('Only emails with this `state`.'),
  account_id: z.string().max(200).optional().describe('Only emails of this account.'),
  idempotency_key: z
    .string()
    .regex(IDEMPOTENCY_KEY, KEY_FORM)
    .optional()
    .describe(
      'The answer is the one email with this key. Keys are known for 24 hours. Not together with a filter or a page.',
    ),
});

/** The routes by which a client reads its emails. */
const readRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms: { sends, tracking } }) => {
  const shown = async (send: Send | undefined) => {
    if (send === undefined)
      throw new ServiceError(404, 'errors/resource_not_found', 'You have no email with this id or Idempotency-Key.');
    return emailOf(send, isTracked(send) ? await tracking.countsOf(send.application_id, send.id) : undefined);
  };

  app.get(
    '/v2/emails/:tracking_id',
    {
      schema: {
        operationId: 'getEmail',
        summary: 'Get an email and its outcome',
        tags: ['Emails'],
        params: z.strictObject({ tracking_id: z.string() }),
        response: { 200: email, ...problems(404) },
      },
    },
    async (request) => {
      const { applicationId, scopeId } = callerOf(request);
      return shown(await sends.records.visible(applicationId, scopeId, { id: request.params.tracking_id }));
    },
  );

  app.get(
    '/v2/emails',
    {
      schema: {
        operationId: 'listEmails',
        summary: 'List emails, or find one by its Idempotency-Key',
        description:
          'Emails are listed for 30 days. A scoped key gets the emails of the accounts in its scope. With ' +
          '`idempotency_key`, the answer is an `Email`, or 404; without it, an `EmailList`. An idempotency key belongs ' +
          'to the scope of the API key that used it; keys without a scope share theirs.',
        tags: ['Emails'],
        querystring: findOrListQuery,
        response: { 200: emailOrList, ...problems(404) },
      },
    },
    async (request) => {
      const { applicationId, scopeId } = callerOf(request);
      const { idempotency_key, status: state, account_id: accountId, offset, cursor } = request.query;
      if (idempotency_key !== undefined) {
        if ([state, accountId, offset, cursor].some((each) => each !== undefined))
          throw new ServiceError(
            422,
            'errors/unprocessable_entity',
            'Give idempotency_key without status, account_id, offset and cursor: it finds one email.',
          );
        // As in the header: with and without quotes it is the same key.
        const key = readIdempotencyKey([idempotency_key]);
        return shown(
          typeof key === 'string'
            ? await sends.records.visible(applicationId, scopeId, { idempotencyKey: key })
            : undefined,
        );
      }
      const page = pageOf(request.query);
      const accountIds = accountId === undefined ? undefined : [accountId].filter((id) => isId(id, 'acc'));
      const rows = await sends.records.list(applicationId, { state, accountIds, scopeId }, page);
      const tracked = rows.filter(isTracked).map(({ id }) => id);
      const counts = await tracking.countsOfAll(applicationId, tracked);
      return listAnswer('EmailList', rows, page, (row) =>
        emailOf(row, isTracked(row) ? (counts.get(row.id) ?? { opens: 0, clicks: 0 }) : undefined),
      );
    },
  );
};

const isTracked = ({ tracks_opens, tracks_links }: Send): boolean => tracks_opens || tracks_links;

async function handle(rooms: Rooms, request: FastifyRequest, reply: FastifyReply): Promise<SendResult> {
  const { account, intake, send } = request;
  const passage = passageOf(reply);
  const body = request.body as EmailRequest;
  if (account === null || intake === null || send === null || passage === undefined || body.account_id !== account.id)
    throw new Error('The request has passed its hooks without its account or its files.');
  // The client disconnected while the request waited, so the files are gone. Nothing is sent without them.
  if (intake.isClosed) throw disconnected();
  const inline: Attachment[] = [];
  try {
    for (const each of body.attachments ?? []) inline.push(await storeInline(rooms, each));
    return await sendEmail(rooms, {
      ...{ account, body, ...send },
      attachments: [...intake.attachments, ...inline],
      fingerprint: intake.fingerprinter.fingerprint(account.id).value,
      claim: {
        dispatch: (note) => passage.dispatch(note),
        noteOutcome: (note) => passage.noteOutcome(note),
        leave: () => passage.leave(),
        afterwards: (work) => void request.afterwards.push(work),
      },
    });
  } finally {
    for (const { file } of inline) await file.close();
  }
}

/** A file that came in a JSON body. */
async function storeInline(
  { spool }: Rooms,
  { filename, content_type: type, content }: NonNullable<EmailRequest['attachments']>[number],
): Promise<Attachment> {
  const file = await spool.store(Readable.from([Buffer.from(content, 'base64')]));
  return { filename, contentType: mediaType(type), file };
}

/** Whether the provider may count the request: it was called, and its network could be reached. */
const reachedProvider = (error: unknown): boolean =>
  error instanceof ProviderError ? error.type !== 'errors/network_down' : !(error instanceof ServiceError);

function accountIdOf(fields: unknown): string | undefined {
  const id =
    fields instanceof FormFields
      ? // A repeated field is refused later: the account that is checked is always the account that is used.
        fields.textOf('account_id')
      : (fields as { account_id?: unknown } | null)?.account_id;
  return typeof id === 'string' && id !== '' ? id : undefined;
}

function emailOf(send: Send, counts: HitCounts | undefined): z.output<typeof email> {
  const { state, error } = send;
  return {
    object: 'Email',
    id: send.id,
    account_id: send.account_id,
    state: shownState(state),
    provider_id: send.provider_id,
    provider_immutable_id: send.provider_immutable_id,
    message_id: send.message_id,
    rejected: send.rejected,
    error,
    tracking: counts
      ? {
          label: send.label,
          opens: send.tracks_opens ? counts.opens : null,
          clicks: send.tracks_links ? counts.clicks : null,
        }
      : null,
    created_at: send.created_at.toISOString(),
    sent_at: state === 'sent' ? (send.settled_at?.toISOString() ?? null) : null,
  };
}
