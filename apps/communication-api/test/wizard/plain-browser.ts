import { expect } from 'vitest';
import { linkMaker } from '../support/links.ts';

/** A page or a redirect, as a browser without script sees it. */
export interface Seen {
  readonly status: number;
  /** Path, or the whole address if it leads elsewhere. */
  readonly location: string | null;
  readonly headers: Headers;
  readonly html: string;
}

/** A browser without script: it keeps cookies, follows redirects to the service, and submits forms. */
export class PlainBrowser {
  readonly cookies = new Map<string, string>();
  /** Path of the page that is shown. */
  path = '';
  page: Seen = { status: 0, location: null, headers: new Headers(), html: '' };

  constructor(
    private readonly url: string,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  /** One request, without following a redirect. */
  async request(path: string, init: RequestInit = {}): Promise<Seen> {
    const answer = await fetch(new URL(path, this.url), {
      redirect: 'manual',
      ...init,
      headers: {
        accept: 'text/html',
        cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...this.headers,
        ...(init.headers as Record<string, string> | undefined),
      },
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      this.cookies.set(name, value);
    }
    const { status, headers } = answer;
    return { status, headers, location: headers.get('location'), html: await answer.text() };
  }

  /** Opens a page. Returns the address at which the service led elsewhere, if it did. */
  async open(path: string): Promise<string | undefined> {
    return this.#follow(path, await this.request(path));
  }

  /** Submits the form of the page whose action ends with a text, with the values that the page has. */
  async submit(action: string, values: Readonly<Record<string, string>> = {}): Promise<string | undefined> {
    const { path, body } = this.form(action, values);
    const seen = await this.request(path, { method: 'POST', body });
    expect([200, 303, 400, 401, 403, 404, 409, 410, 422, 429]).toContain(seen.status);
    return this.#follow(path, seen);
  }

  /** What a form of the page would send. */
  form(action: string, values: Readonly<Record<string, string>> = {}): { path: string; body: URLSearchParams } {
    for (const [, path = '', content = ''] of this.page.html.matchAll(
      /<form method="post" action="([^"]+)"[^>]*>(.*?)<\/form>/gs,
    ))
      if (path.endsWith(action)) return { path, body: new URLSearchParams({ ...initialValues(content), ...values }) };
    throw new Error(`The page ${this.path} has no form ${action}: ${this.page.html}`);
  }

  async #follow(path: string, seen: Seen): Promise<string | undefined> {
    let [at, now] = [path, seen];
    for (let i = 0; now.location !== null; i++) {
      expect(i).toBeLessThan(6);
      const next = new URL(now.location, new URL(at, this.url));
      if (next.origin !== new URL(this.url).origin) return next.href;
      at = next.pathname + next.search;
      now = await this.request(at);
    }
    this.path = at.replace(/^\/auth\/l\/[0-9a-f]+/, '').replace(/\?.*/, '');
    this.page = now;
    return undefined;
  }

  /** The page as text. */
  get text(): string {
    return this.page.html
      .replace(/<head>.*<\/head>|<[^>]+>/gs, ' ')
      .replace(/&amp;/g, '&')
      .replace(/\s+/g, ' ');
  }
}

/** The values with which a form is shown. */
function initialValues(html: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [input] of html.matchAll(/<input [^>]*>/g)) {
    const attribute = (name: string): string | undefined => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
    const name = attribute('name') ?? '';
    const isChosen = !/type="(checkbox|radio)"/.test(input) || / checked/.test(input);
    if (isChosen) values[name] = attribute('value') ?? '';
  }
  for (const [, name = '', options = ''] of html.matchAll(/<select [^>]*name="([^"]*)"[^>]*>(.*?)<\/select>/gs)) {
    const all = [...options.matchAll(/<option ([^>]*)>/g)].map(([, attributes = '']) => attributes);
    const chosen = all.find((attributes) => /\bselected\b/.test(attributes)) ?? all[0] ?? '';
    values[name] = /value="([^"]*)"/.exec(chosen)?.[1] ?? '';
  }
  return values;
}

/**
 * Links of an application, and browsers that open them.
 * @param fields of every link
 */
export function linksAndBrowsers(url: string, token: string, fields: Readonly<Record<string, unknown>>) {
  const makeLink = linkMaker(url, token, fields);
  let browsers = 0;
  /** Each browser has an address of its own, since forms are counted by address. */
  const browser = (headers: Readonly<Record<string, string>> = {}): PlainBrowser =>
    new PlainBrowser(url, { 'x-forwarded-for': `192.0.2.${++browsers}`, ...headers });
  const createLink = async (own?: object): Promise<string> => new URL(await makeLink(own)).pathname;
  /** A new link, and a new browser that has opened it. */
  const opened = async (own?: object, headers?: Readonly<Record<string, string>>) => {
    const path = await createLink(own);
    const client = browser(headers);
    await client.open(path);
    return { path, client };
  };
  return { browser, createLink, opened };
}

/** The account that an address of the application names. */
export const accountIn = (callback: string | undefined): string =>
  new URL(callback ?? '').searchParams.get('account_id') ?? '';
