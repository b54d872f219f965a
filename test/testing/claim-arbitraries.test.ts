import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ClaimStore } from '../../src/core/ports.ts';
import { claimStoreSuite } from '../../src/testing/claim-store-suite.ts';
import { createWrongClaimStore } from './wrong-claim-stores.ts';

/** A store that records every command with the state of the record and the reply. */
function withLog(inner: ClaimStore, log: Set<string>): ClaimStore {
  const note =
    <Command>(name: string, run: (id: never, command: Command) => unknown) =>
    async (id: { scope: string; key: string }, command: Command): Promise<never> => {
      const before = await inner.inspect(id);
      const reply = (await run(id as never, command)) as { kind: string };
      log.add(`${name} on ${before?.state ?? 'absent'}: ${reply.kind}`);
      return reply as never;
    };
  return {
    ...inner,
    begin: note('begin', inner.begin),
    extend: note('extend', inner.extend),
    dispatch: note('dispatch', inner.dispatch),
    complete: note('complete', inner.complete),
    abandon: note('abandon', inner.abandon),
  };
}

it('random histories reach every cell of the table in docs/claims.md', async () => {
  const log = new Set<string>();
  let histories: (() => Promise<void>) | undefined;
  const it = (name: string, run: () => Promise<void>): void => {
    if (name.includes('random histories')) histories = run;
  };
  fc.configureGlobal({ seed: 4 });
  try {
    const create = (clock: { now(): number }) => withLog(createWrongClaimStore(clock), log);
    claimStoreSuite({ describe: (_, define) => define(), it }, fc, { name: 'x', create, histories: 600 });
    await histories?.();
  } finally {
    fc.resetConfigureGlobal();
  }
  const cells = [
    ...['absent', 'free', 'in_progress'].map((state) => `begin on ${state}: claimed`),
    ...['free', 'in_progress', 'completed'].map((state) => `begin on ${state}: mismatch`),
    ...['absent', 'free', 'in_progress', 'completed'].map((state) => `begin on ${state}: late`),
    'begin on in_progress: in_progress',
    'begin on in_progress: orphan',
    'begin on completed: settled',
    ...['extend', 'dispatch', 'abandon'].flatMap((name) => [
      ...['absent', 'free', 'in_progress', 'completed'].map((state) => `${name} on ${state}: lost`),
      `${name} on in_progress: ${name === 'abandon' ? 'released' : 'ok'}`,
      `${name} on completed: settled`,
    ]),
    ...['absent', 'free', 'in_progress', 'completed'].map((state) => `complete on ${state}: ok`),
    ...['free', 'in_progress', 'completed'].map((state) => `complete on ${state}: lost`),
    'complete on completed: superseded',
  ];
  expect([...log].sort()).toEqual(cells.sort());
});
