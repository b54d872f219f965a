/** What gateways say to each other, on a real Redis. */
import { isHeadgateError } from 'headgate';
import { afterFile } from 'headgate-testbed/after-file';
import { redisForFile } from 'headgate-testbed/redis-for-file';
import { Redis } from 'ioredis';
import { expect, it, vi } from 'vitest';
import { FleetBoard, type StoredCandidate } from '../../src/store/fleet-board.ts';
import { redisBoard } from '../../src/store/redis-board.ts';

const redis = await redisForFile();
const client = new Redis({ port: redis.port, host: '127.0.0.1' });
afterFile(() => client.disconnect());

function board({ deadlineMs = 2_000, refreshMs = 20 } = {}): FleetBoard {
  const made = new FleetBoard(redisBoard(client), { deadlineMs, refreshMs });
  afterFile(() => made.close());
  return made;
}
const soon = { timeout: 10_000, interval: 20 };

it('the details of 120 processes are read by 50 at a time, in the order of their names, and each expires', async () => {
  await client.flushall();
  const names = Array.from({ length: 120 }, (_, i) => `p${i}`);
  for (const [i, name] of names.entries())
    if (i % 2 === 0) board({ refreshMs: 60_000 }).start(name, () => `{"n":${i}}`);
  const expected = names.map((_, i) => (i % 2 === 0 ? `{"n":${i}}` : null));
  await vi.waitFor(async () => expect(await board().detailsOf(names)).toEqual(expected), soon);
  const keys = await client.keys('headgate:fleet:*');
  expect(keys).toHaveLength(60);
  const mget = /cmdstat_mget:calls=(\d+)/;
  await client.config('RESETSTAT');
  await board().detailsOf(names);
  expect(mget.exec(await client.info('commandstats'))?.[1]).toBe('3');
  for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0);
});

it('a process says its details again and again, and no more after it was closed', async () => {
  await client.flushall();
  let times = 0;
  const one = board();
  one.start('one', () => `${++times}`);
  await vi.waitFor(async () => expect(Number((await one.detailsOf(['one']))[0])).toBeGreaterThan(2), soon);
  one.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const before = times;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(times).toBe(before);
});

it('a candidate reaches every other process once, and so does its end, also by a loss of the data', async () => {
  await client.flushall();
  const seen: [string, StoredCandidate][] = [];
  const boards = ['one', 'other'].map((name) => {
    const made = board();
    made.watchCandidate((candidate) => seen.push([name, candidate]));
    made.start(name, () => '{}');
    return made;
  });
  const [one] = boards as [FleetBoard];
  await one.writeCandidate({ id: 'x', text: 'limits' });
  await vi.waitFor(() => expect(seen).toEqual([['other', { id: 'x', text: 'limits' }]]), soon);
  await client.flushall();
  const ended = { id: '', text: '' };
  await vi.waitFor(
    () =>
      expect(seen.slice(1).sort()).toEqual([
        ['one', ended],
        ['other', ended],
      ]),
    soon,
  );
  await one.writeCandidate({ id: 'y', text: 'limits' });
  await vi.waitFor(() => expect(seen.at(-1)).toEqual(['other', { id: 'y', text: 'limits' }]), soon);
  await one.writeCandidate(ended);
  await vi.waitFor(() => expect(seen.at(-1)).toEqual(['other', ended]), soon);
  expect(seen).toHaveLength(5);
});

it('while Redis does not answer, each call ends within its deadline, and the process goes on saying its details', async () => {
  await client.flushall();
  const one = board({ deadlineMs: 100 });
  one.start('one', () => '{}');
  await vi.waitFor(async () => expect(await one.detailsOf(['one'])).toEqual(['{}']), soon);
  redis.freeze();
  const errors = await Promise.all(
    [one.detailsOf(['one']), one.writeCandidate({ id: 'x', text: '' })].map((call) => call.catch((error) => error)),
  );
  redis.thaw();
  expect(errors.map((error) => isHeadgateError(error, 'store_timeout'))).toEqual([true, true]);
  await client.flushall();
  await vi.waitFor(async () => expect(await one.detailsOf(['one'])).toEqual(['{}']), soon);
});

it('a value of another kind under the keys is an error of the store', async () => {
  await client.flushall();
  await client.set('headgate:fleet:{fleet}:candidate', 'text');
  await expect(board().writeCandidate({ id: 'x', text: '' })).rejects.toMatchObject({ code: 'store_unavailable' });
});
