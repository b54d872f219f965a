import { randomUUID } from 'node:crypto';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { beforeAll, describe, expect, test } from 'vitest';
import type { SendStep } from '../../src/journal/claims.ts';
import {
  type CrashEmail,
  type CrashWorld,
  DIRECT_STEPS,
  EVERY_STEP,
  type Fleet,
  startCrashWorld,
} from '../support/crashes.ts';

type Kind = 'draft' | 'direct';

let world: CrashWorld;
let fleet: Fleet;

beforeAll(async () => {
  world = await startCrashWorld();
  fleet = await world.fleet();
});

const retry = (of: Fleet, email: CrashEmail) => world.retry(of, email);

const received = async ({ account }: CrashEmail): Promise<number> =>
  (await world.db.selectFrom('mock_messages').select('id').where('account_id', '=', account).execute()).length;

/** Sends in a process of its own that kills or freezes itself at a step. */
async function sendUntil(of: Fleet, kind: Kind, step: SendStep, signal: 'SIGKILL' | 'SIGSTOP') {
  const email = await world.newEmail('mock', `${randomUUID()}@mock.test`, { drafts: kind === 'draft' });
  return { email, ...(await world.sendUntil(of, email, step, signal)) };
}

/**
 * A change waits for the steps around what another process may see of a send. `journal/sender.property.test.ts` lets
 * attempts die before and after each call.
 */
const killedAt = (steps: readonly SendStep[]) =>
  NIGHTLY ? steps : steps.filter((step) => step !== 'asked' && step !== 'settled');

// Both groups wait for leases at the same time.
describe.concurrent('a process that is killed', () => {
  test.concurrent.each(killedAt(EVERY_STEP))('at "%s": a draft is sent once', async (step) => {
    const { email } = await sendUntil(fleet, 'draft', step, 'SIGKILL');
    expect(await retry(fleet, email)).toMatchObject({ status: 201, body: { object: 'EmailSent' } });
    expect(await received(email)).toBe(1);
  });

  test.concurrent.each(killedAt(DIRECT_STEPS))(
    'at "%s": an email without a draft is never sent twice',
    async (step) => {
      const { email } = await sendUntil(fleet, 'direct', step, 'SIGKILL');
      const { status, body } = await retry(fleet, email);
      // What happened between the mark and the provider's answer is not known.
      if (step === 'dispatched') expect({ status, type: body.type }).toEqual({ status: 409, type: 'errors/conflict' });
      else expect(status).toBe(201);
      expect(await received(email)).toBe(step === 'dispatched' ? 0 : 1);
    },
  );
});

/** A change waits for the step whose outcome a process that wakes up may not know. */
const frozenAt = (steps: readonly SendStep[]) => (NIGHTLY ? steps : steps.filter((step) => step === 'dispatched'));

describe.concurrent('a process that is frozen longer than its lease, and then goes on', () => {
  test.concurrent.each(frozenAt(EVERY_STEP))('at "%s": a draft is sent once', async (step) => {
    const { email, process, answered } = await sendUntil(fleet, 'draft', step, 'SIGSTOP');
    expect(await retry(fleet, email)).toMatchObject({ status: 201 });
    process.child.kill('SIGCONT');
    await answered;
    expect(await received(email)).toBe(1);
  });

  test.concurrent.each(frozenAt(DIRECT_STEPS))('at "%s": an email without a draft is sent once', async (step) => {
    const { email, process, answered } = await sendUntil(fleet, 'direct', step, 'SIGSTOP');
    expect((await retry(fleet, email)).status).toBe(step === 'dispatched' ? 409 : 201);
    process.child.kill('SIGCONT');
    await answered;
    // A process that wakes up with the mark has the right to send, and writes down that it did.
    expect(await received(email)).toBe(1);
    expect((await retry(fleet, email)).status).toBe(201);
  });
});
