import { readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type MailClient, mailClient, multipart, part } from '../../support/mail-client.ts';
import { startService } from '../../support/service.ts';
import { head, openConnection } from '../../support/socket-client.ts';

const MAX_BODY = 1_048_576;
const service = await startService({
  MAX_BODY_BYTES: String(MAX_BODY),
  // A busy machine reads the other bodies in this time.
  BODY_TIMEOUT_MS: '1000',
  SPOOL_MAX_BYTES: '1100000',
});
const application = await service.application();
const client = (options?: Parameters<typeof mailClient>[2]): Promise<MailClient> =>
  mailClient(service, application, options);
const { token } = application;

const openFiles = (): number => readdirSync('/proc/self/fd').length;
const usedBytes = (): number => service.rooms.spool.usedBytes;
const until = async (isTrue: () => boolean, what: string): Promise<void> => {
  for (let waited = 0; !isTrue(); waited += 10) {
    if (waited > 10_000) throw new Error(`still not true: ${what}`);
    await pause(10);
  }
};
const FORM = 'content-type: multipart/form-data; boundary=b1';
const CHUNKED = 'transfer-encoding: chunked';
const chunk = (bytes: string): string => `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`;
const FILE_HEAD = '--b1\r\nContent-Disposition: form-data; name="attachments"; filename="a"\r\n\r\n';

test('a client that streams for ever is cut off at the bound, in a file, a field, and outside of all parts', async () => {
  const starts = [FILE_HEAD, '--b1\r\nContent-Disposition: form-data; name="body"\r\n\r\n', '', '--b1--\r\n'];
  const stream = async (start: string): Promise<void> => {
    const connection = await openConnection(service.url);
    await connection.write(`${head(token, FORM, CHUNKED)}\r\n${chunk(start || 'x')}`);
    let sent = 0;
    const piece = chunk('x'.repeat(60_000));
    while (await connection.write(piece)) {
      sent += 60_000;
      if (sent > 20 * MAX_BODY) throw new Error('never cut off');
    }
    expect({ start, received: connection.received() }).toMatchObject({
      received: expect.stringMatching(/^HTTP\/1\.1 413 [\s\S]*payload_too_large/),
    });
  };
  await Promise.all(starts.map(stream));
  expect(usedBytes()).toBe(0);
});

test('a body whose length is too large is refused, and the client that has sent it reads the answer', async () => {
  const { raw, accountId } = await client();
  for (const type of ['application/json', 'multipart/form-data; boundary=b1', 'application/x-www-form-urlencoded']) {
    const { status, json } = await raw(type, Buffer.alloc(MAX_BODY + 1, 0x20));
    expect({ type, status, ...json }).toMatchObject({ status: 413, type: 'errors/payload_too_large' });
  }
  const fits = JSON.stringify({ account_id: accountId, to: [{ identifier: 'a@example.com' }], body: '' });
  const body = 'x'.repeat(MAX_BODY - fits.length);
  expect(await raw('application/json', fits.replace('"body":""', `"body":"${body}"`))).toMatchObject({ status: 201 });
});

test('a slow body is answered with 408, whatever it is in the middle of', async () => {
  const starts = [
    '',
    '--b1',
    `${FILE_HEAD}xxx`,
    `${FILE_HEAD}${'x'.repeat(200_000)}`,
    '--b1\r\nContent-Disposition: form-data; name="body"\r\n\r\nx',
  ];
  const pauses = starts.map(async (start) => {
    const connection = await openConnection(service.url);
    await connection.write(`${head(token, FORM, CHUNKED)}\r\n${start && chunk(start)}`);
    const statuses = await connection.answers(1);
    await until(connection.isClosed, 'the connection is closed');
    return { statuses, body: connection.received() };
  });
  for (const pause of await Promise.all(pauses))
    expect(pause).toEqual({ statuses: [408], body: expect.stringMatching(/errors\/request_timeout/) });
  expect(usedBytes()).toBe(0);
});

test('after a refusal before the end of the body, the answer arrives, and the connection is usable or closed', async () => {
  const { fields, delivered } = await client();
  const good = JSON.stringify(fields);
  const next = `${head(token, 'content-type: application/json', `content-length: ${good.length}`)}\r\n${good}`;
  const long = Buffer.from(`--b1\r\nnonsense\r\n\r\n${'x'.repeat(300_000)}`);
  let reused = 0;
  const early = [
    // Refused by the parser, by the key, and by the type.
    head(token, FORM, `content-length: ${long.length}`),
    head('ck_wrong', FORM, `content-length: ${long.length}`),
    head(token, 'content-type: image/png', `content-length: ${long.length}`),
    head(token, FORM, 'content-encoding: gzip', `content-length: ${long.length}`),
  ];
  for (const start of early) {
    const connection = await openConnection(service.url);
    await connection.write(Buffer.concat([Buffer.from(`${start}\r\n`), long]));
    const [status] = await connection.answers(1);
    expect([401, 422]).toContain(status);
    if (/^connection: close/im.test(connection.received())) {
      await until(connection.isClosed, 'the connection is closed');
      continue;
    }
    reused++;
    await connection.write(next);
    expect({ start, statuses: await connection.answers(2) }).toEqual({ start, statuses: [status, 201] });
    connection.socket.destroy();
  }
  expect(reused).toBeGreaterThan(0);
  expect(await delivered()).toBe(reused);
});

test('a quota that is used up is 503 with retry-after, costs nothing, and is free again afterwards', async () => {
  const sender = await client();
  const { accountId, form, json } = sender;
  const parts = [part('account_id', accountId), part('to', [{ identifier: 'ann@example.com' }]), part('body', 'Hi')];
  const file = { name: 'attachments', value: 'x'.repeat(700_000), filename: 'a' };
  const content = Buffer.alloc(300_000).toString('base64');
  const slow = part('to', [{ identifier: 'delay.2000@mock.test' }]);
  const holder = form([...parts.slice(0, 1), slow, part('body', 'Hi'), file]);
  await until(() => usedBytes() >= 600_000, 'the first request has its file');
  for (const attempt of [
    () => form([...parts, file], 'quota'),
    () => json({ attachments: ['a', 'b'].map((filename) => ({ filename, content })) }, 'quota json'),
  ]) {
    const answer = await attempt();
    expect(answer).toMatchObject({ status: 503, json: { type: 'errors/service_unavailable' } });
    expect(answer.headers.get('retry-after')).toBe('5');
    expect(answer.headers.has('x-ratelimit-limit')).toBe(false);
  }
  expect(await holder).toMatchObject({ status: 201 });
  await until(() => usedBytes() === 0, 'the quota is free');
  expect(await form([...parts, file], 'quota')).toMatchObject({ status: 201 });
  await until(() => usedBytes() === 0, 'the quota is free');
});

test('a hundred uploads that are cut off leave no open file, no used quota and no running request behind', async () => {
  const before = openFiles();
  for (let round = 0; round < 100; round++) {
    const connection = await openConnection(service.url);
    const size = [0, 10, 70_000, 200_000][round % 4] ?? 0;
    await connection.write(`${head(token, FORM, CHUNKED)}\r\n${chunk(FILE_HEAD + 'x'.repeat(size))}`);
    if (round % 3 === 0) await pause(5);
    connection.socket.destroy();
  }
  await until(() => usedBytes() === 0, 'the quota is free');
  await until(() => openFiles() <= before + 2, `files: ${openFiles()} of ${before}`);
  await until(() => openConnections() <= 5, 'the connections are closed');
});

const openConnections = (): number => {
  let open = 0;
  service.app.server.getConnections((_, count) => {
    open = count;
  });
  return open;
};

test('a send goes on if the client disconnects, with its files, and the key finds its outcome', async () => {
  const before = openFiles();
  const goOn = async (drafts: boolean, kind: string): Promise<void> => {
    const sender = await client({ drafts });
    const body = multipart([
      part('account_id', sender.accountId),
      part('to', [{ identifier: `${kind}.300@mock.test` }]),
      part('body', 'Hi'),
      { name: 'attachments', value: 'x'.repeat(150_000), filename: 'a.txt' },
    ]);
    const key = `gone ${drafts} ${kind}`;
    const connection = await openConnection(service.url);
    const fields = [FORM, `content-length: ${body.length}`, `idempotency-key: ${key}`];
    await connection.write(Buffer.concat([Buffer.from(`${head(token, ...fields)}\r\n`), body]));
    await pause(150);
    connection.socket.destroy();
    const again = await sender.raw('multipart/form-data; boundary=b1', new Uint8Array(body), {
      'idempotency-key': key,
    });
    expect({ key, ...again }).toMatchObject({ status: 201 });
    expect(await sender.delivered()).toBe(1);
    expect((await sender.newest()).mail.attachments[0]?.size).toBe(150_000);
  };
  // Four at once and their retries would need more than the quota.
  for (const drafts of [true, false]) await Promise.all([goOn(drafts, 'delay'), goOn(drafts, 'slow')]);
  await until(() => usedBytes() === 0, 'the quota is free');
  await until(() => openFiles() <= before + 2, `files: ${openFiles()} of ${before}`);
});

test('a client that disconnects just after its body never makes an email without its files, or of unknown outcome', async () => {
  const sender = await client({ drafts: false });
  const body = multipart([
    part('account_id', sender.accountId),
    part('to', [{ identifier: 'ann@example.com' }]),
    part('body', 'Hi'),
    { name: 'attachments', value: 'x'.repeat(150_000), filename: 'a.txt' },
  ]);
  for (let round = 0; round < 9; round++) {
    const connection = await openConnection(service.url);
    const fields = [FORM, `content-length: ${body.length}`];
    await connection.write(Buffer.concat([Buffer.from(`${head(token, ...fields)}\r\n`), body]));
    await pause(round);
    connection.socket.destroy();
  }
  await until(() => usedBytes() === 0, 'the quota is free');
  const rows = await service.db
    .selectFrom('sends')
    .select(['state'])
    .where('account_id', '=', sender.accountId)
    .execute();
  expect(rows.filter(({ state }) => state !== 'sent')).toEqual([]);
  expect(await sender.delivered()).toBe(rows.length);
  if (rows.length > 0) expect((await sender.newest()).mail.attachments[0]?.size).toBe(150_000);
});

test('several Idempotency-Key fields are refused, and so is a key that is empty, too long, or not printable', async () => {
  const { fields, delivered } = await client();
  const body = JSON.stringify(fields);
  for (const keys of [['a', 'b'], ['a', 'a'], [''], ['k'.repeat(256)], ['é'], ['a\tb']]) {
    const connection = await openConnection(service.url);
    const lines = keys.map((key) => `idempotency-key: ${key}`);
    await connection.write(
      Buffer.from(
        `${head(token, 'content-type: application/json', `content-length: ${body.length}`, ...lines)}\r\n${body}`,
        'latin1',
      ),
    );
    expect({ keys, statuses: await connection.answers(1) }).toEqual({ keys, statuses: [422] });
    connection.socket.destroy();
  }
  expect(await delivered()).toBe(0);
});
