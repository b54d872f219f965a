/** What gateways say to each other, on a real server. */
import { isHeadgateError } from 'headgate';
import { afterFile } from 'headgate-testbed/after-file';
import { Redis } from 'ioredis';
import { expect, it, vi } from 'vitest';
import { FleetBoard, type StoredCandidate } from '../../src/store/fleet-board.ts';
import { connectForFile, isRedis, storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const program = await connectForFile(server);

function board({ deadlineMs = 2_000, refreshMs = 20 } = {}): FleetBoard {
  const made = new FleetBoard(program.board, { deadlineMs, refreshMs });
  afterFile(() => made.close());
  return made;
}
const soon = { timeout: 10_000, interval: 20 };

it('the details of 120 processes are read in the order of their names', async () => {
  await program.clear();
  const names = Array.from({ length: 120 }, (_, i) => `p${i}`);
  for (const [i, name] of names.entries())
    if (i % 2 === 0) board({ refreshMs: 60_000 }).start(name, () => `{"n":${i}}`);
  const expected = names.map((_, i) => (i % 2 === 0 ? `{"n":${i}}` : null));
  await vi.waitFor(async () => expect(await board().detailsOf(names)).toEqual(expected), soon);
});

it.runIf(isRedis)('50 details come with one command, and their keys expire', async () => {
  await program.clear();
  const client = new Redis({ port: server.port, host: '127.0.0.1' });
  const names = Array.from({ length: 120 }, (_, i) => `p${i}`);
  for (const name of names) await program.board.writeDetails(name, '{}', 10_000);
  await client.config('RESETSTAT');
  await board().detailsOf(names);
  expect(/cmdstat_mget:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]).toBe('3');
  for (const key of await client.keys('headgate:fleet:*')) expect(await client.pttl(key)).toBeGreaterThan(0);
  client.disconnect();
});

it('details expire', async () => {
  await program.clear();
  await program.board.writeDetails('one', '{}', 1);
  await program.board.writeDetails('"\u0000\ud800', '{}', 60_000);
  await vi.waitFor(async () => expect(await program.board.detailsOf(['one'])).toEqual([null]), soon);
  expect(await program.board.detailsOf(['one', '"\u0000\ud800'])).toEqual([null, '{}']);
});

it('a process says its details again and again, and no more after it was closed', async () => {
  await program.clear();
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
  await program.clear();
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
  await program.clear();
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

it('while the store does not answer, each call ends within its deadline, and the process goes on saying its details', async () => {
  await program.clear();
  const one = board({ deadlineMs: 100 });
  one.start('one', () => '{}');
  await vi.waitFor(async () => expect(await one.detailsOf(['one'])).toEqual(['{}']), soon);
  server.freeze();
  const errors = await Promise.all(
    [one.detailsOf(['one']), one.writeCandidate({ id: 'x', text: '' })].map((call) => call.catch((error) => error)),
  );
  server.thaw();
  expect(errors.map((error) => isHeadgateError(error, 'store_timeout'))).toEqual([true, true]);
  await program.clear();
  await vi.waitFor(async () => expect(await one.detailsOf(['one'])).toEqual(['{}']), soon);
});

it.runIf(isRedis)('a value of another kind under the keys is an error of the store', async () => {
  await program.clear();
  const client = new Redis({ port: server.port, host: '127.0.0.1' });
  await client.set('headgate:fleet:{fleet}:candidate', 'text');
  client.disconnect();
  await expect(board().writeCandidate({ id: 'x', text: '' })).rejects.toMatchObject({ code: 'store_unavailable' });
});
