import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import type { AwayStep, LinkAnswer, LinkContext, LinkFlow } from '../../src/providers/link-flow.ts';
import { secret } from './secret.ts';

const words = (text: string) => ({ en: text, de: text });

interface Grant {
  readonly account: string;
  readonly challenge: string | null;
  readonly scope: string;
}

/** The site of a provider where users sign in: OAuth with PKCE, as far as the wizard is concerned. */
export class SignInSite {
  readonly #grants = new Map<string, Grant>();
  /** Answers one request for a token later, when this is called. */
  release: (() => void) | undefined;
  /** Whether the next request for a token waits for {@link release}. */
  holds = false;
  /** Requests for a token. */
  tokenRequests = 0;
  url = '';

  /** Starts the site, which ends after the test file. */
  static async start(): Promise<SignInSite> {
    const site = new SignInSite();
    const server = createServer((request, response) => void site.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    afterAll(() => void server.close());
    site.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return site;
  }

  /** The address to which the site sends a user back who allows the access. */
  allow(authorize: string, account: string, scope = 'mail'): string {
    const query = new URL(authorize).searchParams;
    const code = secret();
    this.#grants.set(code, { account, challenge: query.get('code_challenge'), scope });
    return backWith(query, { code });
  }

  /** The address to which the site sends a user back with an error. */
  refuse(authorize: string, error = 'access_denied'): string {
    return backWith(new URL(authorize).searchParams, { error, error_description: 'canary-description' });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.url);
    if (url.pathname === '/token') return this.#token(url.searchParams, response);
    const account = url.searchParams.get('account');
    if (account !== null) {
      const back = account === '' ? this.refuse(url.href) : this.allow(url.href, account);
      return void response.writeHead(302, { location: back }).end();
    }
    const hidden = [...url.searchParams].map(
      ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
    );
    response.setHeader('content-type', 'text/html; charset=utf-8').end(
      `<!doctype html><html lang="en"><title>Sign in</title><h1>The own site of the provider</h1><form>${hidden.join('')}
        <label>Account <input name="account" value="ann@away.test"></label><button>Allow</button></form>
        <form>${hidden.join('')}<input type="hidden" name="account" value=""><button>Deny</button></form>`,
    );
  }

  async #token(query: URLSearchParams, response: ServerResponse): Promise<void> {
    this.tokenRequests++;
    if (this.holds) {
      this.holds = false;
      await new Promise<void>((resolve) => {
        this.release = resolve;
      });
    }
    const code = query.get('code') ?? '';
    const grant = this.#grants.get(code);
    this.#grants.delete(code);
    const isOurs = grant?.challenge === challengeOf(query.get('verifier') ?? '');
    response.writeHead(isOurs ? 200 : 400).end(JSON.stringify(isOurs ? grant : { error: 'invalid_grant' }));
  }
}

function backWith(query: URLSearchParams, answer: Readonly<Record<string, string>>): string {
  const back = new URL(query.get('redirect_uri') ?? '');
  back.search = new URLSearchParams({ ...answer, state: query.get('state') ?? '' }).toString();
  return back.href;
}

const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

interface State {
  readonly verifier: string;
}

/** A flow that asks for an account at a sign-in site. It needs the scope `mail`. */
export const signInFlow = (site: SignInSite): LinkFlow<State> => ({
  begin: async () => ({ verifier: randomBytes(32).toString('base64url') }),
  stepOf: ({ verifier }, context) => signInStep(site, verifier, context),
  submit: async ({ verifier }, { query }, { net, signal }): Promise<LinkAnswer<State>> => {
    const code = new URLSearchParams(String(query)).get('code');
    if (code === null) throw new Error(`canary-error ${String(query)}`);
    const answer = await net.fetch(`${site.url}/token?${new URLSearchParams({ code, verifier })}`, { signal });
    if (!answer.ok) throw new Error('canary-token');
    const { account, scope } = (await answer.json()) as Grant;
    if (scope !== 'mail')
      return { kind: 'invalid', faults: [{ message: words('Please allow the access to your mailbox.') }] };
    return { kind: 'identified', account: { providerUserId: account, name: account, credentials: {} } };
  },
});

function signInStep(site: SignInSite, verifier: string, context: LinkContext): AwayStep {
  const url = new URL('/authorize', site.url);
  url.search = new URLSearchParams({
    redirect_uri: context.callbackUrl,
    state: context.callbackState,
    code_challenge: challengeOf(verifier),
    login_hint: context.reconnect?.name ?? context.loginHint ?? '',
  }).toString();
  return {
    kind: 'away',
    name: 'sign-in',
    title: { en: 'Sign in at the provider', de: 'Beim Anbieter anmelden' },
    intro: { en: 'It asks you to allow the access.', de: 'Er fragt Sie nach Ihrer Erlaubnis.' },
    button: { en: 'Go to the provider', de: 'Weiter zum Anbieter' },
    url: url.href,
  };
}
