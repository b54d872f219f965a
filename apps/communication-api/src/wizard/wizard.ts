import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Account } from '../accounts/accounts.ts';
import { FormFields } from '../api/form.ts';
import { WIZARD_SCRIPT, WIZARD_STYLESHEET } from '../assets.ts';
import { syncAt } from '../domain/initial-sync.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Rooms } from '../rooms.ts';
import { headersOf, seeOther, sendPage, wantsJson } from './answers.ts';
import { setCookie } from './cookie.ts';
import { Csrf, isFromOtherSite } from './csrf.ts';
import type { Entered } from './entered-values.ts';
import { answerError } from './error-page.tsx';
import { CSRF_FIELD } from './pages/parts.tsx';
import { linkPath } from './paths.ts';
import { createPostLimit } from './post-limit.ts';
import { Views } from './views.tsx';
import type { SessionVisit } from './visit.ts';
import { authOriginOf, openVisit, StrayCallbackError, type Visit, WrongHostError } from './visit.ts';
import { errorResult, errorUrl, type Submitted, successUrl, WizardFlow } from './wizard-flow.ts';

const YEAR_SECONDS = 31_536_000;
/** Says that the entry page just set the cookie: if it is missing then, the browser refuses cookies. */
const COOKIE_SET = 'c';
/** Says that the user came back from a provider's own site with an answer that counts no more. */
const STALE = 'stale';
/**
 * The API's document does not contain the pages. A program that follows links with HEAD must neither begin a session nor
 * use up the answer of a provider.
 */
const HIDDEN = { schema: { hide: true }, exposeHeadRoute: false };

/** The hosted wizard, under `/auth`. */
export const wizard: FastifyPluginAsync<{ rooms: Rooms }> = async (app, { rooms }) => {
  await app.register(cookie);
  app.decorateRequest('visitFrame', null);
  app.decorateRequest('formOrigins', null);
  await app.register(async (auth) => addWizard(auth, rooms), { prefix: '/auth' });
};

function addWizard(app: FastifyInstance, rooms: Rooms): void {
  const checkPost = createPostLimit(rooms);
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((request, reply) =>
    answerError(new ServiceError(404, 'errors/resource_not_found', 'No page has this address.'), request, reply),
  );
  app.addHook('onRequest', async (request) => {
    if (request.method === 'POST')
      await checkPost(request, (request.params as { readonly token?: string }).token ?? '');
  });
  for (const { path, contentType, body } of [WIZARD_STYLESHEET, WIZARD_SCRIPT])
    app.get(path.replace('/auth', ''), HIDDEN, async (_, reply) =>
      reply
        .type(contentType)
        .header('cache-control', `public, max-age=${YEAR_SECONDS}, immutable`)
        .header('x-content-type-options', 'nosniff')
        .send(body),
    );
  new WizardRoutes(rooms).register(app);
}

type Handler = (visit: SessionVisit, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;
type FormHandler = (
  visit: SessionVisit,
  entered: Entered,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply>;

/** The pages and forms of a link. A form leads on to a page, so that a reload never submits it again. */
class WizardRoutes {
  readonly #flow: WizardFlow;
  readonly #csrf: Csrf;
  readonly #views: Views;

  constructor(private readonly rooms: Rooms) {
    this.#flow = new WizardFlow(rooms);
    this.#csrf = new Csrf(rooms.envelope);
    this.#views = new Views(this.#csrf, this.#flow);
  }

  register(app: FastifyInstance): void {
    app.get('/l/:token', HIDDEN, async (request, reply) => this.#enter(request, reply));
    this.#page(app, 'choose', async (visit, request, reply) => {
      const { q } = request.query as { readonly q?: unknown };
      return sendPage(request, reply, this.#views.choose(visit, typeof q === 'string' ? q.slice(0, 100) : ''));
    });
    this.#page(app, 'step/:step', async (visit, request, reply) => {
      const current = await this.#flow.stepOf(visit, visit.session.data);
      const { step } = current;
      if (step.kind === 'away')
        request.formOrigins = [...(request.formOrigins ?? []), new URL(step.url).origin, this.rooms.config.AUTH_URL];
      const isStale = step.kind === 'away' && STALE in (request.query as object);
      return sendPage(request, reply, this.#views.step(visit, current, this.rooms.clock(), isStale));
    });
    this.#page(app, 'unreachable', async (visit, request, reply) =>
      sendPage(request, reply, this.#views.unreachable(visit), 503),
    );
    this.#page(app, 'wrong-account', async (visit, request, reply) => {
      if (wantsJson(request)) throw new ServiceError(401, 'errors/wrong_account', 'This is another account.');
      const expected = await this.rooms.accounts.find(visit.link.application_id, visit.link.account_id ?? '');
      return sendPage(request, reply, this.#views.wrongAccount(visit, expected?.name ?? ''), 401);
    });
    this.#page(app, 'sync', async (visit, request, reply) => {
      const account = await this.#linkedAccount(visit);
      const url = successUrl(visit, account.id, account.provider);
      const now = this.rooms.clock();
      if (syncAt(account.sync, now).status === 'completed') return seeOther(request, reply, url);
      return sendPage(request, reply, this.#views.sync(visit, account, now, url));
    });
    this.#page(app, 'linked', async (visit, request, reply) => {
      const { id, provider } = await this.#linkedAccount(visit);
      return sendPage(request, reply, this.#views.linked(visit, successUrl(visit, id, provider)));
    });
    this.#page(app, 'cancelled', async (visit, request, reply) =>
      sendPage(request, reply, this.#views.cancelled(visit, cancelUrl(visit))),
    );
    app.get('/l/:token/progress', HIDDEN, async (request, reply) => this.#progress(request, reply));
    app.get('/callback', HIDDEN, async (request, reply) => this.#passOn(request, reply));
    app.get('/l/:token/callback', HIDDEN, async (request, reply) => this.#arrive(request, reply));
    this.#form(app, 'choose', (...parts) => this.#choose(...parts));
    this.#form(app, 'step/:step', (...parts) => this.#submit(...parts));
    this.#form(app, 'back', async (visit, _, request, reply) => {
      if (!isClosed(visit)) await this.#flow.restart(visit);
      return seeOther(request, reply, linkPath(visit.token));
    });
    this.#form(app, 'cancel', async (visit, _, request, reply) => {
      const cancelled = await this.rooms.links.cancel(visit.link.application_id, visit.link, visit.session.row.id);
      // A form that is submitted twice leads to the same place.
      const isDone = cancelled || visit.session.row.step === 'cancelled';
      return seeOther(request, reply, isDone ? cancelUrl(visit) : linkPath(visit.token));
    });
  }

  /** Opens a link: makes a session if the browser sends none, and leads to its page. Nothing else happens. */
  async #enter(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const visit = await openVisit(this.rooms, request);
    if (visit.session !== undefined)
      return seeOther(request, reply, await this.#pathOf({ ...visit, session: visit.session }));
    const { step, data } = await this.#flow.start(visit, { language: visit.frame.language });
    const { session: row, cookie: value } = await this.rooms.wizardSessions.create(visit.link, step, data);
    this.#setCookie(reply, visit, value, row.expires_at);
    const path = await this.#pathOf({ ...visit, session: { row, data, cookie: value } });
    return seeOther(request, reply, `${path}?${COOKIE_SET}=1`);
  }

  /** A page of a session. If the session is on another page, the browser is led there. */
  #page(app: FastifyInstance, below: string, handler: Handler): void {
    app.get(`/l/:token/${below}`, HIDDEN, async (request, reply) => {
      const visit = await openVisit(this.rooms, request);
      const { session, token, frame } = visit;
      if (session === undefined) {
        if (COOKIE_SET in (request.query as object)) return sendPage(request, reply, this.#views.cookies(visit), 403);
        return seeOther(request, reply, `${linkPath(token)}?lang=${frame.language}`);
      }
      const path = await this.#pathOf({ ...visit, session });
      // A finished sync is shown on a separate page until the user leaves it.
      const isHere = pathOnly(request) === path || (below === 'sync' && session.row.step === 'linked');
      return isHere ? handler({ ...visit, session }, request, reply) : seeOther(request, reply, path);
    });
  }

  /** A form of a session. It must come from one of the session's own pages. */
  #form(app: FastifyInstance, below: string, handler: FormHandler): void {
    app.post(`/l/:token/${below}`, HIDDEN, async (request, reply) => {
      const visit = await openVisit(this.rooms, request);
      const { session, token, origin } = visit;
      const entered = enteredIn(request);
      const form = pathOnly(request).slice(linkPath(token, '').length);
      if (
        session === undefined ||
        isFromOtherSite(request, origin) ||
        !this.#csrf.isValid(session.row.id, form, entered.get(CSRF_FIELD))
      )
        throw new ServiceError(403, 'errors/session_mismatch', 'The form was not made for this session.');
      return handler({ ...visit, session }, entered, request, reply);
    });
  }

  async #choose(visit: SessionVisit, entered: Entered, request: FastifyRequest, reply: FastifyReply) {
    const { row, data } = visit.session;
    if (row.step === 'choose') {
      const { language } = data;
      const provider = visit.providers.find(({ name }) => name === entered.get('provider'));
      const next =
        provider === undefined
          ? { step: 'choose' as const, data: { language, faults: [{ message: 'provider' as const }] } }
          : await this.#flow.begin(visit, provider, { language });
      await this.rooms.wizardSessions.save(row.id, next.step, next.data);
    }
    return seeOther(request, reply, linkPath(visit.token));
  }

  async #submit(visit: SessionVisit, entered: Entered, request: FastifyRequest, reply: FastifyReply) {
    const { row, data } = visit.session;
    const here = linkPath(visit.token);
    // The session may be further: the page was old, or another tab was faster.
    if (row.step === 'linked') return this.#leave(visit, request, reply);
    if (row.step !== 'flow' || data.isUnreachable === true) return seeOther(request, reply, here);
    const current = await this.#flow.stepOf(visit, data);
    if (pathOnly(request) !== linkPath(visit.token, `step/${current.step.name}`)) return seeOther(request, reply, here);
    const submitted = await this.#flow.submit(visit, current, entered);
    if (submitted.kind === 'away') return seeOther(request, reply, submitted.url);
    return this.#goOn(visit, submitted, request, reply);
  }

  /**
   * The address to which all providers send users back, on the host of AUTH_URL. The session may be on a custom domain,
   * so its own page takes the answer.
   */
  async #passOn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (authOriginOf(this.rooms, request.host.toLowerCase()) === undefined) throw new WrongHostError();
    const way = this.#flow.wayBackOf(stateIn(request));
    if (way === undefined) throw new StrayCallbackError();
    return seeOther(request, reply, `${way.origin}${linkPath(way.token, 'callback')}?${queryOf(request)}`);
  }

  /** A browser that comes back from a provider's own site. It must be the browser that left. */
  async #arrive(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const visit = await openVisit(this.rooms, request);
    const { session, token } = visit;
    const state = stateIn(request);
    if (session === undefined || this.#flow.wayBackOf(state)?.token !== token) throw new StrayCallbackError();
    const here = { ...visit, session };
    const arrived = await this.#flow.arrive(here, state, queryOf(request));
    if (arrived.kind !== 'stale') return this.#goOn(here, arrived, request, reply);
    return seeOther(request, reply, `${await this.#pathOf(here)}?${STALE}=1`);
  }

  /** After a page of a provider: the next one, or back to the application. */
  async #goOn(
    visit: SessionVisit,
    submitted: Exclude<Submitted, { kind: 'away' }>,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    if (submitted.kind === 'critical') return seeOther(request, reply, errorUrl(visit, submitted.result));
    if (submitted.kind === 'stay') return seeOther(request, reply, linkPath(visit.token));
    return this.#leave(visit, request, reply);
  }

  /** The account is linked: the user waits for the sync, or returns to the application. */
  async #leave(visit: SessionVisit, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { wizardSessions } = this.rooms;
    const { row, cookie: before } = visit.session;
    const changed = await wizardSessions.changeCookie(row, before);
    this.#setCookie(reply, visit, changed, wizardSessions.endAfterLink(row));
    if (visit.config.global?.wait_initial_sync === true) return seeOther(request, reply, linkPath(visit.token, 'sync'));
    const { id, provider } = await this.#linkedAccount(visit);
    return seeOther(request, reply, successUrl(visit, id, provider));
  }

  async #progress(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const visit = await openVisit(this.rooms, request);
    const { session } = visit;
    if (session?.row.step !== 'linked')
      throw new ServiceError(403, 'errors/session_mismatch', 'This session has linked no account.');
    const now = this.rooms.clock();
    const { sync } = await this.#linkedAccount({ ...visit, session });
    return reply.headers(headersOf(null)).send(this.#views.syncView(visit, syncAt(sync, now), now));
  }

  /** The account that the session linked. */
  async #linkedAccount({ token, link }: SessionVisit): Promise<Account> {
    // The link may have been read before the account was linked.
    const usedAccountId = link.used_account_id ?? (await this.rooms.links.resolve(token))?.used_account_id ?? '';
    const account = await this.rooms.accounts.find(link.application_id, usedAccountId);
    if (account === undefined)
      throw new ServiceError(404, 'errors/invalid_resource_identifier', 'The account was removed.');
    return account;
  }

  /** The page on which a session is. */
  async #pathOf(visit: SessionVisit): Promise<string> {
    const { token, config, session } = visit;
    switch (session.row.step) {
      case 'flow':
        if (session.data.isUnreachable === true) return linkPath(token, 'unreachable');
        return linkPath(token, `step/${(await this.#flow.stepOf(visit, session.data)).step.name}`);
      case 'linked': {
        if (config.global?.wait_initial_sync !== true) return linkPath(token, 'linked');
        const { sync } = await this.#linkedAccount(visit);
        return linkPath(token, syncAt(sync, this.rooms.clock()).status === 'running' ? 'sync' : 'linked');
      }
      default:
        return linkPath(token, session.row.step);
    }
  }

  #setCookie(reply: FastifyReply, { cookieName }: Visit, value: string, end: Date): void {
    setCookie(reply, cookieName, value, Math.ceil((end.getTime() - this.rooms.clock()) / 1_000));
  }
}

const isClosed = ({ session }: SessionVisit): boolean =>
  session.row.step === 'linked' || session.row.step === 'cancelled';

const cancelUrl = (visit: Visit): string =>
  errorUrl(visit, errorResult('errors/operation_canceled', 'Operation cancelled', 'The user cancelled.'));

/** The path without its query and without a slash at its end. */
const pathOnly = ({ url }: FastifyRequest): string => (url.split('?')[0] ?? '').replace(/\/$/, '');

const queryOf = ({ url }: FastifyRequest): string => url.split('?').slice(1).join('?');

const stateIn = (request: FastifyRequest): string => new URLSearchParams(queryOf(request)).get('state') ?? '';

/** The fields of a submitted form. If a field is repeated, its first value counts. */
function enteredIn({ body }: FastifyRequest): Entered {
  if (!(body instanceof FormFields))
    throw new ServiceError(422, 'errors/unprocessable_entity', 'Send a form: application/x-www-form-urlencoded.');
  return new Map(body.entries.toReversed());
}
