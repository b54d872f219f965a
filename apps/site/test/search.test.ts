import { describe, expect, it } from 'vitest';
import { useSite } from './support/browser.ts';

/** What people type, and the page that answers it. */
const SEARCHES: readonly (readonly [query: string, page: string])[] = [
  ['express', '/docs/adapters/express'],
  ['block an account', '/docs/gateway/admin-api'],
  ['fake clock', '/docs/reference'],
  ['redis cluster', '/docs/redis'],
  ['idempotency key', '/docs/idempotency'],
  ['client address', '/docs/client-ip'],
  ['kubernetes', '/docs/gateway/production'],
  ['prometheus metrics', '/docs/gateway/metrics'],
  ['write a store', '/docs/write-a-store'],
  ['graphql', '/docs/adapters/nest'],
  ['shadow', '/docs/shadow'],
  ['simulate', '/docs/simulate'],
  ['postgres store', '/docs/postgres'],
  ['which store', '/docs/which-store'],
];

describe('search', () => {
  const site = useSite();

  it('finds the right page first for what people look for', async () => {
    const { page, open, faults } = await site.openPage();
    await open('/docs/');
    await page.keyboard.press('Control+k');
    const first = page.locator('.VPLocalSearchBox .result').first();
    const found: [string, string][] = [];
    for (const [query, expected] of SEARCHES) {
      await page.locator('.VPLocalSearchBox input').fill(query);
      const read = async (): Promise<string> => (await first.getAttribute('href'))?.replace(/#.*/, '') ?? '';
      await expect
        .poll(read)
        .toBe(expected)
        .catch(() => undefined);
      found.push([query, await read()]);
    }
    expect(found).toEqual(SEARCHES);
    expect(await faults()).toEqual([]);
  });
});
