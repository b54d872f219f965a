import type { ConfigIssue } from './config-error.ts';
import { isObject, type JsonObject } from './json.ts';
import { digestOfToken, keyName } from './token-digest.ts';

/**
 * Checks that each credential of a list contains one secret, and that no two credentials share a secret.
 * @param seen the place of each digest of lists that were checked before; the digests of this list are added
 */
export function tokenIssues(
  list: readonly unknown[],
  path: string,
  noun: 'key' | 'token',
  seen: Map<string, string>,
): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  for (const [index, credential] of list.entries()) {
    // The schema reports anything else.
    if (!isObject(credential)) continue;
    const { sha256, token } = credential as JsonObject;
    const place = `${path}[${index}]`;
    if ((sha256 === undefined) === (token === undefined))
      issues.push({ path: place, reason: 'needs exactly one of sha256 and token' });
    const digest = digestOf(sha256, token);
    if (digest === undefined) continue;
    const first = seen.get(digest);
    if (first === undefined) seen.set(digest, place);
    else issues.push({ path: place, reason: `is the same ${noun} as ${first}` });
  }
  return issues;
}

/** The name of a key as written in the file; undefined if it has neither a name nor a secret. */
export function nameOfKey({ name, sha256, token }: JsonObject): string | undefined {
  const digest = digestOf(sha256, token);
  return typeof name === 'string' ? name : digest && keyName(digest);
}

function digestOf(sha256: unknown, token: unknown): string | undefined {
  const digest = typeof token === 'string' ? digestOfToken(token) : sha256;
  return typeof digest === 'string' ? digest.toLowerCase() : undefined;
}
