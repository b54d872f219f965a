import { afterFile } from 'headgate-testbed/after-file';
import { launchBrowser } from 'headgate-testbed/chromium';
import { type OpenPage, openPages } from 'headgate-testbed/open-pages';
import { startUpstream } from 'headgate-testbed/upstream';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { type AdminGateway, startAdminGateway, TOKENS } from '../../support/admin.ts';

export const EMAILS = 'POST /api/v1/emails';
export const CHATS = 'GET /api/v1/chats';

/** A gateway with a console, and a browser. */
export interface ConsoleGateway extends AdminGateway {
  readonly url: string;
  readonly newPage: OpenPage;
  /** Opens a page of the console with the token of a role. */
  open(address: string, as?: 'viewer' | 'operator' | 'admin', options?: BrowserContextOptions): Promise<Page>;
  /** Sends requests of an account, one after the other, and returns their statuses. */
  send(account: string, times: number, route?: string): Promise<number[]>;
}

/** Limits of the gateways. */
export const LIMITS = {
  default: { allMethods: ['100/1m'] },
  providers: { linkedin: { allMethods: ['20/1m', '800/1d'], routes: { [EMAILS]: ['5/1m'] } } },
};

/** Starts a gateway whose accounts `acc_1` to `acc_3` have the provider linkedin, with two limited routes. */
export async function startGateway(rest: Record<string, unknown> = {}): Promise<AdminGateway> {
  const upstream = await startUpstream((_seen, response) => void response.end('{"ok":true}'));
  return startAdminGateway(upstream.url, {
    accounts: ['acc_1', 'acc_2', 'acc_3', '<img src=x onerror=alert(1)>'].map((id) => ({
      id,
      application: 'app_1',
      provider: 'linkedin',
    })),
    idempotency: { secret: 'the-secret-of-fingerprints' },
    routes: [
      { route: EMAILS, account: 'query.account_id' },
      { route: CHATS, account: 'query.account_id' },
      { route: 'POST /once', idempotent: true },
    ],
    limits: LIMITS,
    ...rest,
  });
}

/** Starts such a gateway, and a browser in front of its console. */
export async function startConsole(rest: Record<string, unknown> = {}): Promise<ConsoleGateway> {
  const gateway = await startGateway(rest);
  const browser = await launchBrowser();
  afterFile(() => browser.close());
  const newPage = openPages(browser);
  const url = `http://127.0.0.1:${gateway.adminPort}/`;
  return {
    ...gateway,
    url,
    newPage,
    async open(address, as = 'operator', options = {}) {
      const page = await newPage(options);
      // As after a sign-in in this tab. To sign in first would draw the charts of the overview for each test.
      await page.addInitScript((token) => sessionStorage.setItem('headgate-token', token), TOKENS[as]);
      await page.goto(`${url}${address}`);
      await page.waitForSelector('h1');
      return page;
    },
    async send(account, times, route = EMAILS) {
      const [method = '', path = ''] = route.split(' ');
      const statuses: number[] = [];
      for (let i = 0; i < times; i++)
        statuses.push((await gateway.ask(method, `${path}?account_id=${encodeURIComponent(account)}`)).status);
      return statuses;
    },
  };
}

/** Each page once in each kind of colours, and in a wide and a narrow window. */
export const VIEWS = [
  ['light', 1280],
  ['dark', 320],
] as const;
