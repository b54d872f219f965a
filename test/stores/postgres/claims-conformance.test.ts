import fc from 'fast-check';
import { NIGHTLY, randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import type { ClaimStore } from '../../../src/core/ports.ts';
import { createPostgresClaimStore } from '../../../src/stores/postgres/claims.ts';
import { databaseOf } from '../../../src/stores/postgres/client.ts';
import { claimStoreSuite } from '../../../src/testing/claim-store-suite.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { replayTrace } from '../../model/replay.ts';
import { readTraceFile } from '../../model/trace-file.ts';
import { claimRowsSuite } from '../../support/claim-rows-suite.ts';
import { CLIENTS, migrated, newPool } from '../../support/postgres.ts';

const HISTORIES: Readonly<Record<string, number>> = {
  pg: randomRuns(30),
  'postgres.js': randomRuns(8),
  PGlite: randomRuns(8),
};
/** A change replays every fourth trace: each takes many round trips. The Redis store replays all of them per change. */
const TRACES_APART = NIGHTLY ? 1 : 4;

for (const [name, create] of Object.entries(CLIENTS)) {
  const client = create();
  const schema = `claims ${name}`.replace(/[^a-z]/g, '_');
  await migrated(client, schema);
  claimStoreSuite({ describe, it }, fc, {
    name,
    histories: HISTORIES[name] ?? 0,
    async create(clock) {
      await databaseOf('client', client).query(`delete from "${schema}".claims`, []);
      return createPostgresClaimStore(client, { schema, clock, deadlineMs: 60_000 });
    },
  });
  describe(`${name} with rows`, () => claimRowsSuite(client, `${schema}_rows`));
}

it('the traces of docs/claim.pml are what the functions do, step by step', async () => {
  const schema = 'claims_traces';
  const pool = await migrated(newPool(), schema);
  const inFile = readTraceFile().sets.flatMap((set) => set.traces.map((trace) => ({ set, trace })));
  const all = inFile.filter((_, i) => i % TRACES_APART === 0);
  let next = 0;
  const run = async (): Promise<void> => {
    for (let i = next++; i < all.length; i = next++) {
      const { set, trace } = all[i] as (typeof all)[number];
      const clock = createFakeClock(1_000_000_000_000);
      const store = createPostgresClaimStore(pool, { schema, clock, deadlineMs: 60_000 });
      await replayTrace(inScope(store, `trace ${i}`), clock, trace, set);
    }
  };
  await Promise.all([run(), run(), run(), run()]);
  expect(all.length).toBeGreaterThan(1_000 / TRACES_APART);
});

/** The traces share one key, so each gets a scope. */
function inScope(store: ClaimStore, scope: string): ClaimStore {
  return {
    synchronous: false,
    begin: ({ key }, command) => store.begin({ scope, key }, command),
    extend: ({ key }, command) => store.extend({ scope, key }, command),
    dispatch: ({ key }, command) => store.dispatch({ scope, key }, command),
    complete: ({ key }, command) => store.complete({ scope, key }, command),
    abandon: ({ key }, command) => store.abandon({ scope, key }, command),
    inspect: ({ key }) => store.inspect({ scope, key }),
  };
}
