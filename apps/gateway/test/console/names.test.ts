/** Names may have any characters: each of them is shown as text, and has a page. */
import { expect, test } from 'vitest';
import { startConsole } from './support/console-gateway.ts';

const NAMES = ['%41/b?c#d&e=f+g', '..', ' a', '\u202ecca', 'x'.repeat(1_024)];
/** Half of a surrogate pair. No address can have it. */
const HALF = '\ud800';

const gateway = await startConsole({
  accounts: [...NAMES, HALF].map((id) => ({ id, application: 'app_1', provider: 'linkedin' })),
});

test('every account leads to its own page, and one that no address can name harms no other', async () => {
  const page = await gateway.open('#/accounts', 'viewer');
  const links = page.locator('tbody a');
  await expect.poll(() => links.count()).toBe(NAMES.length + 1);
  const shown = await links.allTextContents();
  for (const name of NAMES) {
    await links.nth(shown.indexOf(name)).click();
    await expect.poll(() => page.textContent('h1')).toBe(name);
    await page.waitForSelector('text=Provider linkedin');
    await page.goBack();
    await expect.poll(() => links.count()).toBe(NAMES.length + 1);
  }
});
