import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { linkAccount } from '../../support/accounts.ts';
import { clientOf } from '../../support/client.ts';
import type { Trouble } from '../../support/graph/double.ts';
import { startMicrosoft } from '../../support/microsoft.ts';
import { startService } from '../../support/service.ts';

const microsoft = await startMicrosoft();
const { graph } = microsoft;
const service = await startService(microsoft.environment);
const application = await service.application();
const call = clientOf(service.url, application.token);

/** After these, a client may try again with the same key. */
const TRANSIENT: readonly Trouble[] = [
  { status: 504, code: 'UnknownError', does: true },
  { status: 504, code: 'UnknownError' },
  { status: 500, code: 'ErrorInternalServerError', does: true },
  { status: 503, code: 'ErrorServerBusy' },
  { status: 429, code: 'ApplicationThrottled' },
  { status: 401, code: 'InvalidAuthenticationToken' },
  { cut: 'before' },
  { cut: 'after' },
];
const troubles = fc.array(fc.constantFrom(...TRANSIENT), { maxLength: 3 });
const history = fc.record({
  'me.CreateMessages': troubles,
  'me.GetMessages': troubles,
  'me.messages.message.send': troubles,
  'me.mailFolders.ListMessages': troubles,
  'me.translateExchangeIds': troubles,
  'me.DeleteMessages': troubles,
});

test('whatever Graph answers, and wherever connections break: retries with one key send one email', async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.boolean(), async (given, keepsIds) => {
      const user = microsoft.user();
      const { mailbox } = user;
      mailbox.keepsIds = keepsIds;
      const account = await linkAccount(service.rooms, application.id, {
        ...{ provider: 'outlook', providerUserId: user.oid, name: user.email },
        secret: { credentials: microsoft.credentialsOf(user) },
      });
      for (const [operation, list] of Object.entries(given)) graph.trouble(operation, ...list);
      const key = { 'idempotency-key': randomUUID() };
      const body = { account_id: account.id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
      const statuses: number[] = [];
      for (let attempt = 0; attempt < 20 && statuses.at(-1) !== 201; attempt++) {
        // Two refusals of a token in a row disconnect the account, as they should.
        await service.rooms.accounts.reconnect(application.id, account.id, {
          name: user.email,
          secret: { credentials: microsoft.credentialsOf(user) },
        });
        statuses.push((await call('POST', '/api/v1/emails', body, key)).status);
        expect(mailbox.delivered.length).toBeLessThanOrEqual(1);
      }
      graph.calm();
      expect(statuses.at(-1)).toBe(201);
      expect(mailbox.delivered).toHaveLength(1);
    }),
    { numRuns: 15 },
  );
});
