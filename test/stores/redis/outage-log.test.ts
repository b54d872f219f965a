import { afterEach, describe, expect, it, vi } from 'vitest';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { createRedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { OutageLog, type OutageLogOptions } from '../../../src/stores/shared/outage-log.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const HARMLESS = new Error('harmless');

/** A log, the messages that it wrote, and a clock. */
function outageLog(options: Partial<OutageLogOptions> = {}) {
  const messages: string[] = [];
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const outages = new OutageLog({
    what: 'rate limits',
    effect: 'every request is accepted',
    log: (message, error) => void messages.push(error instanceof Error ? `${message} [${error.message}]` : message),
    isReady: () => true,
    isHarmless: (error) => error === HARMLESS,
    ...options,
  });
  return { outages, messages, pass: (ms: number) => (now += ms) };
}

const FAILS = 'headgate: the store for rate limits fails, so every request is accepted';
const AGAIN = 'headgate: the store for rate limits answers again';

afterEach(() => vi.restoreAllMocks());

describe('a log of outages', () => {
  it('writes the first failure and the end of the outage, once each', () => {
    const { outages, messages, pass } = outageLog();
    outages.answered();
    for (let i = 0; i < 9; i++) outages.failed(new Error(`down ${i}`));
    expect(messages).toEqual([`${FAILS} [down 0]`]);
    pass(1_000);
    for (let i = 0; i < 9; i++) outages.answered();
    expect(messages).toEqual([`${FAILS} [down 0]`, AGAIN]);
    outages.failed(new Error('down again'));
    expect(messages).toEqual([`${FAILS} [down 0]`, AGAIN, `${FAILS} [down again]`]);
  });

  it('an outage lasts until no call has failed for a second, so that single failures do not fill the log', () => {
    const { outages, messages, pass } = outageLog();
    outages.answered();
    for (let i = 0; i < 100; i++) {
      outages.failed(new Error('late'));
      outages.answered();
      pass(999);
      outages.answered();
    }
    expect(messages).toHaveLength(1);
    pass(1);
    outages.answered();
    expect(messages).toEqual([`${FAILS} [late]`, AGAIN]);
  });

  it('says what to do if the client was never connected, but not if it was connected before', () => {
    const { outages, messages } = outageLog({ isReady: () => false });
    outages.failed(new Error('no'));
    expect(messages).toEqual([`${FAILS}; connect the client, and await store.ready() when the program starts [no]`]);
    const later = outageLog({ isReady: () => false });
    later.outages.answered();
    later.outages.failed(new Error('no'));
    expect(later.messages).toEqual([`${FAILS} [no]`]);
  });

  it('writes the first error of a record only, and no outage for it', () => {
    const { outages, messages } = outageLog();
    outages.failed(HARMLESS);
    outages.recordFailed(new Error('foreign'));
    outages.answered();
    expect(messages).toEqual([
      'headgate: a call for rate limits failed, although the server is well; further ones are not logged [harmless]',
    ]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('listener');
      },
    ],
    ['rejects', () => Promise.reject(new Error('listener'))],
  ])('writes what an onError that %s has thrown', async (_, onError) => {
    const { outages, messages } = outageLog({ onError: onError as () => void });
    outages.failed(HARMLESS);
    await Promise.resolve();
    await Promise.resolve();
    expect(messages).toContain('headgate: onError of a store failed [listener]');
  });
});

describe('what onError of a store throws', () => {
  const client = () => {
    const fail = () => Promise.reject(new Error('down'));
    return { evalshaBuffer: fail, evalBuffer: fail } as never;
  };
  const onError = (): never => {
    throw new Error('listener');
  };

  it.each(['refuse', 'admit', 'local'] as const)(
    'does not replace the error of a limit store, and is logged: %s',
    async (policy) => {
      const log: unknown[] = [];
      const options: RedisStoreOptions = { onStoreFailure: policy, onError, logger: (_, error) => log.push(error) };
      const deciding = createRedisStore(client(), options).consume('a', 'r', windowSetFrom(['2/1m']), 1);
      if (policy === 'refuse')
        await expect(deciding).rejects.toMatchObject({ code: 'store_unavailable', cause: { message: 'down' } });
      else expect(await deciding).toMatchObject({ accepted: true, degraded: true });
      expect(log.map(String)).toEqual(['Error: listener', 'Error: down']);
    },
  );

  it('does not replace the error of a claim store, and is logged', async () => {
    const log: unknown[] = [];
    const store = createRedisClaimStore(client(), { onError, logger: (_, error) => log.push(error) });
    await expect(store.inspect({ scope: 's', key: 'k' })).rejects.toMatchObject({
      code: 'store_unavailable',
      cause: { message: 'down' },
    });
    expect(log.map(String)).toEqual(['Error: listener', 'Error: down']);
  });

  it.each([createRedisStore, createRedisClaimStore])('a logger must be false or a function: %o', (create) => {
    expect(() => create(client(), { logger: true as never })).toThrow(/^logger: must be false or a function/);
  });
});
