import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { cleanUpLater } from './clean-up.ts';

/** The application to which users return from the wizard. */
export interface ApplicationSite {
  /** Where users return to. */
  readonly callback: string;
  /** Waits until the user returns. @returns the query with which the user came */
  returned(page: Page): Promise<Readonly<Record<string, string>>>;
}

/** Starts the site, which ends after the test file. */
export async function startApplicationSite(): Promise<ApplicationSite> {
  const server = createServer((_, response) => response.end('back in the application'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  const callback = `http://127.0.0.1:${(server.address() as AddressInfo).port}/cb`;
  return {
    callback,
    returned: async (page) => {
      await page.waitForURL((at) => at.href.startsWith(`${callback}?`));
      return Object.fromEntries(new URL(page.url()).searchParams);
    },
  };
}
