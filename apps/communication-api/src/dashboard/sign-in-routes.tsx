import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { browserName } from '../domain/browser-name.ts';
import type { Invitation } from '../people/invitations.ts';
import type { Authenticated } from '../people/member.ts';
import { ORGANIZATION_ID } from '../people/organizations.ts';
import { PENDING_MS } from '../people/pending-sign-ins.ts';
import type { Rooms } from '../rooms.ts';
import { type Csrf, isFromOtherSite } from '../wizard/csrf.ts';
import { CSRF_FIELD } from '../wizard/pages/parts.tsx';
import { seeOther, sendPage } from './answers.tsx';
import { type Entered, enteredIn, type FormProps } from './here.ts';
import { Inputs } from './inputs.ts';
import { FormOf } from './pages/forms.tsx';
import { JoinPage } from './pages/join-page.tsx';
import { MessagePage } from './pages/message-page.tsx';
import { SignInCodePage } from './pages/sign-in-code-page.tsx';
import { SignInPage } from './pages/sign-in-page.tsx';
import { joinPath, PATHS } from './paths.ts';
import { forgedForm, HIDDEN, originOf, pathOnly, readCookie, sessionOf, setCookie } from './router.ts';
import type { SignInLimit } from './sign-in-limit.ts';

/** A page of the dashboard, to which a sign-in may lead back. */
const NEXT = /^\/dashboard(?:\/[\w-]+)*$/;
/** A code of the member's app, or a recovery code, that was not accepted. */
export const WRONG_CODE = 'This code is wrong, or it was used. Enter another one.';
const COOKIE_BYTES = 18;
const COOKIE = /^[\w-]{24}$/;

/** The routes for people without a session: signing in, and becoming a member by a link. */
export function signInRoutes(app: FastifyInstance, rooms: Rooms, csrf: Csrf, limit: SignInLimit): void {
  const { people } = rooms;

  /**
   * A browser chooses its cookie. An unchecked text could make the token of such a form valid for a form of a session.
   */
  function formCookie(request: FastifyRequest): string | undefined {
    const cookie = readCookie(rooms, request, 'dashboard-form');
    return cookie !== undefined && COOKIE.test(cookie) ? cookie : undefined;
  }

  /** A form for a browser without a session. Its token is bound to a cookie of the browser. */
  function formFor(request: FastifyRequest, reply: FastifyReply): FormProps {
    const action = pathOnly(request);
    const cookie = formCookie(request) ?? randomBytes(COOKIE_BYTES).toString('base64url');
    setCookie(rooms, request, reply, 'dashboard-form', cookie);
    return { action, csrf: csrf.tokenOf(cookie, action) };
  }

  /** @throws ServiceError 429, or 403 if the form does not belong to this browser */
  async function receive(request: FastifyRequest): Promise<Entered> {
    await limit.checkAddress(request);
    const entered = enteredIn(request);
    const cookie = formCookie(request);
    const isOurs = cookie !== undefined && csrf.isValid(cookie, pathOnly(request), entered.get(CSRF_FIELD));
    if (!isOurs || isFromOtherSite(request, originOf(rooms, request))) throw forgedForm();
    return entered;
  }

  /** Leads a person whose password was right to the second step, or starts the session. */
  async function proceed(
    authenticated: Authenticated,
    path: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    if ((await people.secondFactors.find(authenticated.member.id)) === undefined)
      return enter(authenticated, false, path, request, reply);
    const pending = people.pendingSignIns.create(authenticated, path);
    setCookie(rooms, request, reply, 'dashboard-pending', pending, PENDING_MS);
    return seeOther(reply, PATHS.signInCode);
  }

  async function enter(
    { member, passwordHash }: Authenticated,
    hasCode: boolean,
    path: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    // An earlier session of this browser ends, so that each cookie belongs to one sign-in.
    const before = await sessionOf(rooms, request);
    if (before !== undefined) await people.sessions.end(before.id);
    const place = {
      address: limit.addressOf(request),
      browser: browserName(request.headers['user-agent'] ?? ''),
    };
    const cookie = await people.sessions.create(member, { passwordHash, hasCode }, place);
    setCookie(rooms, request, reply, 'dashboard', cookie);
    setCookie(rooms, request, reply, 'dashboard-form', '');
    if (hasCode) setCookie(rooms, request, reply, 'dashboard-pending', '');
    return seeOther(reply, path);
  }

  app.get('/sign-in', HIDDEN, async (request, reply) => {
    if ((await sessionOf(rooms, request)) !== undefined) return seeOther(reply, PATHS.applications);
    const { next } = request.query as { readonly next?: unknown };
    const hasOwner = await people.members.hasOwner(ORGANIZATION_ID);
    const props = { next: typeof next === 'string' ? next : '', hasOwner, email: '', faults: [] };
    return sendPage(reply, <SignInPage form={formFor(request, reply)} {...props} />);
  });

  app.post('/sign-in', HIDDEN, async (request, reply) => {
    const entered = await receive(request);
    const inputs = new Inputs(entered);
    const email = inputs.email('email');
    const next = inputs.raw('next');
    // Such a text is not the address of any login, so nothing is compared, and nothing is revealed about any login.
    if (!inputs.isFaulty) await limit.checkLogin(email);
    const authenticated = inputs.isFaulty
      ? undefined
      : await people.members.authenticate(email, inputs.raw('password'));
    if (authenticated === undefined) {
      if (!inputs.isFaulty) inputs.fault(undefined, 'The email address or the password is wrong.');
      const props = { next, hasOwner: true, email, faults: inputs.faults };
      return sendPage(reply, <SignInPage form={formFor(request, reply)} {...props} />, 422);
    }
    await limit.forgive(email);
    return proceed(authenticated, NEXT.test(next) ? next : PATHS.applications, request, reply);
  });

  /** The sign-in of a browser that lacks its code. */
  async function pendingOf(request: FastifyRequest) {
    const token = readCookie(rooms, request, 'dashboard-pending');
    return token === undefined ? undefined : people.pendingSignIns.resolve(token);
  }

  app.get('/sign-in/code', HIDDEN, async (request, reply) => {
    if ((await pendingOf(request)) === undefined) return seeOther(reply, PATHS.signIn);
    return sendPage(reply, <SignInCodePage form={formFor(request, reply)} faults={[]} />);
  });

  app.post('/sign-in/code', HIDDEN, async (request, reply) => {
    const inputs = new Inputs(await receive(request));
    const pending = await pendingOf(request);
    if (pending === undefined) return seeOther(reply, PATHS.signIn);
    const { member, next } = pending;
    await limit.checkCode(member.id);
    const field = inputs.raw('recovery_code') === '' ? 'code' : 'recovery_code';
    if ((await people.secondFactors.use(member, inputs.raw(field))) === undefined) {
      inputs.fault(field, WRONG_CODE);
      return sendPage(reply, <SignInCodePage form={formFor(request, reply)} faults={inputs.faults} />, 422);
    }
    await limit.forgiveCode(member.id);
    return enter(pending, true, next, request, reply);
  });

  const gone = (reply: FastifyReply): FastifyReply =>
    sendPage(
      reply,
      <MessagePage
        title="This link cannot be used"
        detail="It was used or withdrawn, or it expired. Ask for a new one. If you have a login, sign in."
      >
        <a class="button" href={PATHS.signIn}>
          Sign in
        </a>
      </MessagePage>,
      410,
    );

  async function joinPage(
    { request, reply, token }: { request: FastifyRequest; reply: FastifyReply; token: string },
    invitation: Invitation,
    inputs: Inputs,
  ): Promise<FastifyReply> {
    const organization = await people.organizations.find(invitation.organization_id);
    const form = { ...formFor(request, reply), action: joinPath(token) };
    const page = (
      <JoinPage
        form={form}
        invitation={invitation}
        organization={organization?.name ?? ''}
        name={inputs.raw('name')}
        email={inputs.raw('email')}
        faults={inputs.faults}
      />
    );
    return sendPage(reply, page, inputs.isFaulty ? 422 : 200);
  }

  app.get('/join/:token', HIDDEN, async (request, reply) => {
    const { token } = request.params as { readonly token: string };
    const invitation = await people.invitations.find(token);
    if (invitation === undefined) return gone(reply);
    const session = await sessionOf(rooms, request);
    if (session === undefined) return joinPage({ request, reply, token }, invitation, new Inputs(new Map()));
    const { id, member } = session;
    return sendPage(
      reply,
      <MessagePage
        title="You are signed in already"
        detail={`You are ${member.name} (${member.email}). To use this link for another login, sign out, then open it again.`}
      >
        <FormOf action={PATHS.signOut} csrf={csrf.tokenOf(id, PATHS.signOut)}>
          <button type="submit">Sign out</button>
        </FormOf>
      </MessagePage>,
    );
  });

  app.post('/join/:token', HIDDEN, async (request, reply) => {
    const { token } = request.params as { readonly token: string };
    const inputs = new Inputs(await receive(request));
    const invitation = await people.invitations.find(token);
    if (invitation === undefined) return gone(reply);
    const name = inputs.name('name', 'your name');
    const email = inputs.email('email');
    const password = inputs.newPassword('password');
    const joined = inputs.isFaulty ? 'faulty' : await people.invitations.accept(token, { name, email, password });
    if (joined === 'gone') return gone(reply);
    if (joined === 'taken') inputs.fault('email', 'A login with this address exists already. Sign in with it.');
    if (typeof joined === 'string') return joinPage({ request, reply, token }, invitation, inputs);
    return proceed(joined, PATHS.applications, request, reply);
  });
}
