import { expect } from 'vitest';
import type { EffectiveLimit } from '../../src/limits/account-limits.ts';
import type { PlainBrowser } from '../wizard/plain-browser.ts';

/** The fields that the form of a limit sends: the forms of all limits use one address. */
export const limitForm = (html: string, route: string): Record<string, string> => {
  const forms = [...html.matchAll(/<form method="post" action="[^"]*\/preview"[^>]*>(.*?)<\/form>/gs)];
  const form = forms.map(([, content = '']) => content).find((content) => content.includes(`value="${route}"`)) ?? '';
  return Object.fromEntries(
    [...form.matchAll(/<input [^>]*name="([^"]*)"[^>]*>/g)].map(([input, name = '']) => [
      name,
      / value="([^"]*)"/.exec(input)?.[1] ?? '',
    ]),
  );
};

/**
 * Two people change one limit at the same time, each in a browser that shows it: one wins, and the other sees an error.
 * @param stored the limit
 * @returns the loser's browser, and the entered windows there
 */
export async function editAtOnce(
  ann: PlainBrowser,
  bob: PlainBrowser,
  stored: () => EffectiveLimit,
): Promise<{ readonly loser: PlainBrowser; readonly theirs: string }> {
  await ann.submit('/preview', { ...limitForm(ann.page.html, 'all'), windows: '5/1m' });
  await bob.submit('/preview', { ...limitForm(bob.page.html, 'all'), windows: '7/1m' });
  await Promise.all([ann.submit('/limits'), bob.submit('/limits')]);
  const [winner, loser] = ann.page.status === 200 ? [ann, bob] : [bob, ann];
  const [mine, theirs] = winner === ann ? ['5/1m', '7/1m'] : ['7/1m', '5/1m'];
  expect(winner.text).toContain('The limit is changed.');
  expect([loser.page.status, loser.text]).toEqual([409, expect.stringContaining('Another person changed this limit')]);
  expect(stored().windows).toEqual([mine]);
  // The loser's entries are still there, and can be sent again.
  expect(limitForm(loser.page.html, 'all')).toMatchObject({ windows: theirs, seen: String(stored().version) });
  return { loser, theirs };
}
