import { expect, it } from 'vitest';
import { shownConfig } from '../../src/admin/shown-config.ts';
import { checkConfig } from '../../src/config/config.ts';

it.each([
  ['redis://user:s3cret@h:1/2', 'redis://h:1/2'],
  ['postgres://user:s3cret@h/d?sslmode=verify-full', 'postgres://h/d?sslmode=verify-full'],
  [
    { postgres: { url: 'postgres://user@h/d', password: 's3cret' } },
    { postgres: { url: 'postgres://h/d', schema: 'headgate', maxConnections: 10, migrate: false, hasCa: false } },
  ],
])('the store %j is shown without its user and password', (store, shown) => {
  const config = shownConfig(checkConfig({ store }, 'test'));
  expect(config.store).toEqual(shown);
  expect(JSON.stringify(config)).not.toContain('s3cret');
});
