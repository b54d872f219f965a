/** What later issues bring is refused at start, clearly, and never half done: remove each row with its issue. */
import { describe, expect, it } from 'vitest';
import { type Config, configOf, runHeadgate, writeConfig } from '../../support/gateway.ts';

const route = (rest: Config) =>
  configOf('http://127.0.0.1:9', { routes: [{ route: 'POST /api/v1/emails', ...rest }], limits: {} });

const refused: [title: string, config: Config, where: RegExp][] = [
  ['an account in the body', route({ account: 'body.account_id' }), /routes\W+0\W+account/],
  ['an idempotent route', route({ idempotent: true }), /routes\W+0\W+idempotent/],
  ['an idempotent route with options', route({ idempotent: { onOrphan: 'reject' } }), /routes\W+0\W+idempotent/],
];

describe.each(['serve', 'check'])('%s: exit 2', (command) => {
  it.each(refused)('%s', async (_title, config, where) => {
    const { code, all } = await runHeadgate([command, '--config', writeConfig(config)]);
    expect({ code, all }).toEqual({ code: 2, all: expect.stringMatching(where) });
  });
});
