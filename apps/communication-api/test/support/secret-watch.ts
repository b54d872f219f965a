import type { Exchange } from './exchanges.ts';
import { SecretFinder } from './secret-finder.ts';

/** The kind of a secret decides which answers may contain it. */
export type SecretKind =
  | 'API key'
  | 'link token'
  | 'webhook secret'
  | 'wizard cookie'
  | 'dashboard cookie'
  | 'invitation token'
  | 'pending sign-in'
  | 'second factor'
  | 'recovery code'
  | 'CSRF token'
  | 'callback state'
  | 'password'
  | 'master key';

/** The paths whose answer to a POST shows a new secret of this kind. */
const CREATES: Partial<Readonly<Record<SecretKind, RegExp>>> = {
  'API key': /^\/v2\/api-keys$|^\/dashboard\/applications\/\w+\/(?:service|account)-keys$/,
  'invitation token': /^\/dashboard\/invitations$/,
  'recovery code': /^\/dashboard\/login\/second-factor(?:\/recovery-codes)?$/,
  'link token': /^\/v2\/auth\/link$|^\/dashboard\/applications\/\w+\/accounts\/\w+\/link$/,
  'webhook secret':
    /^\/v2\/webhooks\/endpoints(?:\/[^/]+\/secret)?$|^\/dashboard\/applications\/\w+\/webhooks(?:\/\w+\/secret)?$/,
};

/** Pages with forms. */
const HAS_FORMS = /^\/(?:auth\/l|dashboard)(?:\/|$)/;
/** The page of an invitation contains a form, which leads to itself. */
const JOINS = /^\/dashboard\/join\//;
/** The pages that show a secret of this kind as often as they are opened. An offered secret counts only later. */
const PAGES: Partial<Readonly<Record<SecretKind, RegExp>>> = {
  'CSRF token': HAS_FORMS,
  'second factor': /^\/dashboard\/login\/second-factor(?:\/|$)/,
};
const COOKIES: readonly SecretKind[] = ['wizard cookie', 'dashboard cookie', 'pending sign-in'];
/** The page of a link to which the answer of a provider is passed on. */
const LINK_CALLBACK = /^https?:\/\/[^/]+\/auth\/l\/[0-9a-f]+\/callback\?/;
const CSRF_INPUT = /name="_csrf" value="([^"]+)"/g;

/**
 * Looks for secrets in everything that a service writes. A log and a database may contain none. An answer may contain a
 * secret only if it gives the secret to its owner.
 */
export class SecretWatch {
  readonly #finder = new SecretFinder();
  readonly #kinds = new Map<string, SecretKind>();
  readonly #names = new Map<string, string>();
  /** API keys, link tokens and webhook secrets that were shown: a second answer may not show them again. */
  readonly #shown = new Set<string>();
  readonly #faults = new Set<string>();

  /** The findings so far. No line contains a secret. */
  get faults(): readonly string[] {
    return [...this.#faults];
  }

  /** How many secrets it looks for. */
  get size(): number {
    return this.#kinds.size;
  }

  add(kind: SecretKind, secret: string | Uint8Array): void {
    const text = Buffer.from(secret as string).toString('latin1');
    if (this.#names.has(text)) return;
    const name = `${kind} ${this.#kinds.size + 1}`;
    this.#names.set(text, name);
    this.#kinds.set(name, kind);
    this.#finder.add(name, secret);
  }

  /** Something that may contain no secret at all. */
  check(place: string, text: string | Uint8Array): void {
    for (const name of this.#finder.find(text)) this.#faults.add(`${place} contains the ${name}`);
  }

  /** An answer of the service. */
  checkExchange({ method, url, status, headers, body }: Exchange): void {
    const path = url.replace(/\?.*/s, '');
    const isWizard = path.startsWith('/auth/l/');
    const hasForms = HAS_FORMS.test(path);
    const html = body.toString();
    if (hasForms) for (const [, token = ''] of html.matchAll(CSRF_INPUT)) this.add('CSRF token', token);
    const location = headers.get('location') ?? '';
    const leads = new URLSearchParams(location.split('?')[1]);
    // A form leads to the provider's own site. The state of the application comes without a redirect_uri.
    const leaves = isWizard && method === 'POST' && leads.has('redirect_uri');
    if (leaves) this.add('callback state', leads.get('state') ?? '');
    const ofRequest = this.#finder.find(url);
    const comesBack = path === '/auth/callback' && LINK_CALLBACK.test(location);
    // A code is like a password.
    const back: readonly SecretKind[] = comesBack ? ['callback state', 'link token', 'password'] : [];
    const onTheWay: readonly SecretKind[] = leaves ? ['callback state'] : back;
    const created = method === 'POST' && status === 200 ? path.replace(/\/$/, '') : undefined;
    const mayHave = (place: string, name: string): boolean => {
      const kind = this.#kinds.get(name) as SecretKind;
      if (COOKIES.includes(kind)) return place === 'set-cookie';
      const pages = PAGES[kind];
      if (pages !== undefined) return place === 'body' && pages.test(path);
      if (place === 'location' && onTheWay.includes(kind)) return true;
      // The pages of a link lead to each other.
      if (kind === 'link token' && isWizard && ofRequest.includes(name))
        return place === 'body' || (place === 'location' && headers.get(place)?.startsWith('/auth/l/') === true);
      if (kind === 'invitation token' && JOINS.test(path)) return place === 'body' && ofRequest.includes(name);
      const creates = CREATES[kind];
      return place === 'body' && created !== undefined && creates?.test(created) === true && !this.#shown.has(name);
    };
    const places: readonly (readonly [string, string | Buffer])[] = [...headers, ['body', body]];
    const shown: string[] = [];
    for (const [place, text] of places)
      for (const name of this.#finder.find(text))
        if (mayHave(place, name)) shown.push(name);
        else this.#faults.add(`${place} of the answer ${status} to ${method} ${patternOf(path)} contains the ${name}`);
    for (const name of shown) this.#shown.add(name);
  }
}

/** A path without its ids and tokens, so that a fault shows no token. */
const patternOf = (path: string): string => path.replace(/[^/]{20,}/g, '…');
