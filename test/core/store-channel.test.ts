import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { STORE_CHANNEL } from '../../src/core/store-channel.ts';

it('has the name that the docs say', async () => {
  expect(STORE_CHANNEL).toMatch(/^headgate:/);
  expect(await readFile('docs/opentelemetry.md', 'utf8')).toContain(`\`${STORE_CHANNEL}\` (\`STORE_CHANNEL\` of`);
});
