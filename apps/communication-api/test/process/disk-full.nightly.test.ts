/** Disks without space: nothing is half-sent, nothing that was answered is lost, and the service works again. */
import { randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { openDatabase } from '../../src/db/embedded.ts';
import { clientOf } from '../support/client.ts';
import { type RunningProcess, runProcess } from '../support/service-process.ts';
import { mountSmallDisks } from '../support/small-disk.ts';

// A new embedded database has 40 MB and may take twice 16 MB for its log, and the service keeps 48 MB free.
const disks = await mountSmallDisks({ data: 136, tmp: 1 });
const environment = { DATA_DIR: disks.pathOf('data'), TMPDIR: disks.pathOf('tmp') };
const MEBIBYTE = 2 ** 20;

const start = (): RunningProcess => runProcess(['start'], environment, [], { through: disks.through });

let running = start();
let url = await running.ready();
const [token = ''] = /ck_svc_dev_\w+/.exec(running.printed.out) ?? [];
const [account = ''] = /acc_\w{26}/.exec(running.printed.out) ?? [];
for (const route of [null, 'POST /api/v1/emails'])
  await clientOf(url, token)('PUT', '/v2/limits', { account_id: account, route, windows: ['1000/1d'] });

/** What was sent with each key, for retries. */
const files = new Map<string, Uint8Array>();

/** Sends an email with an attachment, which is the same for the same key. */
async function send(key: string, size = 2 * MEBIBYTE) {
  const file = files.get(key) ?? randomBytes(size);
  files.set(key, file);
  const form = new FormData();
  form.set('account_id', account);
  form.set('to', JSON.stringify([{ identifier: 'ann@mock.test' }]));
  form.set('body', 'Hello');
  form.set('attachments', new Blob([new Uint8Array(file)]), 'file.bin');
  const headers = { 'x-api-key': token, 'idempotency-key': key };
  const answer = await fetch(`${url}/api/v1/emails`, { method: 'POST', headers, body: form });
  const { type, tracking_id } = (await answer.json()) as { readonly type?: string; readonly tracking_id?: string };
  return { status: answer.status, type, id: tracking_id, retryAfter: answer.headers.get('retry-after') };
}

const UNAVAILABLE = { status: 503, type: 'errors/service_unavailable', retryAfter: '5' };
/** The ids of the emails that were sent, by their key. */
const sent = new Map<string, string | undefined>();

test('a disk without space for attachments: 503, and the same key sends once there is space', async () => {
  disks.fill('tmp');
  expect(await send('spooled')).toMatchObject(UNAVAILABLE);
  // A small attachment stays in memory.
  expect(await send('small', 1_000)).toMatchObject({ status: 201 });
  disks.free('tmp');
  // There is less space than the attachment needs.
  expect(await send('spooled')).toMatchObject(UNAVAILABLE);
  disks.resize('tmp', 16);
  const first = await send('spooled');
  expect(first.status).toBe(201);
  expect(await send('spooled')).toEqual(first);
  sent.set('small', (await send('small')).id).set('spooled', first.id);
});

test('a disk without space for the embedded database: 503, reading works, and sending works once there is space', async () => {
  disks.fill('data');
  expect(await send('stored')).toMatchObject(UNAVAILABLE);
  expect((await clientOf(url, token)('GET', '/v2/accounts')).status).toBe(200);
  // Its claim is looked up under a lock, which the database writes down.
  expect(await send('spooled')).toMatchObject(UNAVAILABLE);
  disks.free('data');
  expect(await send('spooled')).toMatchObject({ status: 201, id: sent.get('spooled') });
  const first = await send('stored');
  expect(first.status).toBe(201);
  sent.set('stored', first.id);
});

test('the disk runs full: the service stops writing before the log of the database has no space', async () => {
  disks.fill('data', 50);
  let last = { status: 201 } as Awaited<ReturnType<typeof send>>;
  for (let i = 0; last.status === 201 && i < 20; i++) {
    last = await send(`many ${i}`, MEBIBYTE);
    if (last.status === 201) sent.set(`many ${i}`, last.id);
  }
  // A second, if the email is sent and only its outcome could not be written down.
  expect(last).toMatchObject({ ...UNAVAILABLE, retryAfter: expect.stringMatching(/^[15]$/) });
  expect((await clientOf(url, token)('GET', '/v2/accounts')).status).toBe(200);
  running.child.kill('SIGKILL');
  await running.exit;

  const refused = start();
  expect(await refused.exit).toBe(1);
  expect(refused.printed.error).toMatch(/^DATA_DIR: The disk of \S+ has less than 48 MiB of free space\. Make room/);

  disks.free('data');
  running = start();
  url = await running.ready();
  for (const [key, id] of sent) expect(await send(key)).toMatchObject({ status: 201, id });
  // The disk may have run full after this send was written down. The new process finds out first what became of it.
  const refusedKey = [...files.keys()].at(-1) ?? '';
  const late = await vi.waitFor(
    async () => {
      const answer = await send(refusedKey);
      if (answer.status !== 201) expect(answer).toMatchObject({ status: 409, retryAfter: expect.any(String) });
      expect(answer.status).toBe(201);
      return answer;
    },
    { timeout: 60_000, interval: 1_000 },
  );
  running.child.kill('SIGTERM');
  expect(await running.exit).toBe(0);

  const folder = { path: disks.outsidePathOf('data'), isNew: false, close: async () => undefined };
  const { db } = await openDatabase(folder, undefined);
  const received = await db.selectFrom('mock_messages').select('id').execute();
  const journal = await db.selectFrom('sends').select(['id', 'state']).execute();
  await db.destroy();
  expect(received).toHaveLength(files.size);
  expect(journal.map(({ id }) => id).sort()).toEqual([...sent.values(), late.id].sort());
  expect(new Set(journal.map(({ state }) => state))).toEqual(new Set(['sent']));
});
