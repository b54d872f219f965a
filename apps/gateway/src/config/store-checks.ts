import { type ConfigIssue, issueIf } from './config-error.ts';
import { objectOrEmpty } from './json.ts';
import { isPostgresUrl, parsePostgresUrl } from './postgres-url.ts';
import { parseStoreUrl } from './store-url.ts';

const FORMS =
  'must be memory, redis://[user:password@]host:port/db, rediss://…, redis-cluster://host:port,host:port or postgres://user[:password]@host:port/database';

/** No reason shows a value, because a store URL may contain a password. */
export function storeIssues(store: unknown): ConfigIssue[] {
  if (typeof store === 'string') return issueIf('store', flawOf(store));
  const { url, password, ca } = objectOrEmpty(objectOrEmpty(store).postgres);
  if (typeof url !== 'string') return [];
  const parts = parsePostgresUrl(url);
  if ('reason' in parts) return [{ path: 'store.postgres.url', reason: parts.reason }];
  const isTwice = parts.password !== undefined && password !== undefined;
  const isUnchecked = parts.sslMode === 'disable' || parts.sslMode === 'require';
  return [
    ...issueIf('store.postgres.password', isTwice ? 'the URL has a password already: give only one' : undefined),
    ...issueIf(
      'store.postgres.ca',
      ca !== undefined && isUnchecked
        ? `would not be used with sslmode=${parts.sslMode}: write sslmode=verify-full`
        : undefined,
    ),
  ];
}

function flawOf(text: string): string | undefined {
  if (!isPostgresUrl(text)) return parseStoreUrl(text) === undefined ? FORMS : undefined;
  const parts = parsePostgresUrl(text);
  return 'reason' in parts ? parts.reason : undefined;
}
