import { Readable } from 'node:stream';
import { until } from 'headgate-testbed/redis-server';
import { expect, test } from 'vitest';
import { SentCopies } from '../../src/journal/sent-copies.ts';
import type { ComposedMail } from '../../src/mail/mail.ts';

/** Copies whose accounts are served by `fileCopy`, without a database. */
function start(fileCopy: (account: { id: string; application_id: string }) => Promise<unknown>) {
  const warnings: unknown[] = [];
  const copies = new SentCopies({
    queue: { handle: () => undefined },
    accounts: { find: async (application_id: string, id: string) => ({ application_id, id, provider: 'imap' }) },
    mailAccounts: { of: (account: unknown) => account },
    providers: { find: () => ({ mail: { fileCopy: (_: unknown, account: never) => fileCopy(account) } }) },
    log: { info: () => undefined, warn: (fields: unknown) => void warnings.push(fields) },
    clock: Date.now,
    maxBytes: 1_000_000,
  } as unknown as ConstructorParameters<typeof SentCopies>[0]);
  let freed = 0;
  const mail = {
    open: () => Readable.from(['x']),
    hold: () => async () => {
      freed++;
    },
  } as unknown as ComposedMail;
  const hold = (applicationId: string, sendId: string): void =>
    copies.hold({ applicationId, accountId: `account of ${applicationId}`, sendId, messageId: `<${sendId}>` }, mail);
  return { hold, warnings, freed: () => freed, close: () => copies.close() };
}

test('large copies of an application whose mail server hangs leave room for others, and delay none of them', async () => {
  const begun: string[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { hold, warnings, freed, close } = start(async ({ application_id }) => {
    begun.push(application_id);
    if (application_id === 'hanging') await released;
  });
  for (let i = 0; i < 20; i++) hold('hanging', `hanging ${i}`);
  expect(warnings).toHaveLength(4);
  for (let i = 0; i < 3; i++) hold('other', `other ${i}`);
  await until(() => freed() === 3, 'the copies of the other application are filed');
  // One at a time.
  expect(begun.filter((application) => application === 'hanging')).toHaveLength(1);
  release();
  await until(() => freed() === 19, 'all are filed');
  hold('hanging', 'later');
  await until(() => freed() === 20, 'there is room again');
  expect(warnings).toHaveLength(4);
  await close();
});
