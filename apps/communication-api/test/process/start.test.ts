import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { isKnown } from '../support/is-known.ts';
import { runProcess, runToEnd } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DATA_DIR = join(temporaryFolder(), 'data');
const SECRET_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

describe('on an embedded database', () => {
  let token = '';

  test('the first start makes a demonstration and prints its banner', async () => {
    // In the way of `npm start`.
    const { ready, printed, child, exit } = runProcess([], { DATA_DIR }, ['--enable-source-maps']);
    const url = await ready();
    token = /ck_svc_dev_\w+/.exec(printed.out)?.[0] ?? '';
    expect(printed.out).toMatch(/^Making the database in /);
    expect(printed.out).toContain(`data in ${DATA_DIR}`);
    expect(printed.out).toMatch(/A mock mailbox is linked: acc_\w{26}/);
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect((await fetch(`${url}/docs`)).status).toBe(200);
    const [send = ''] = printed.out.replaceAll('\\\n', ' ').match(/^ *curl .*\/api\/v1\/emails$/m) ?? [];
    const sent = await promisify(execFile)('sh', ['-c', send.replace('curl', 'curl --silent --show-error')]);
    expect(JSON.parse(sent.stdout)).toMatchObject({ object: expect.stringMatching(/^Email/) });
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(readdirSync(DATA_DIR).sort()).toEqual(['database', 'master.key']);
  });

  test('create-key prints a token on the standard output, and nothing else there', async () => {
    const { code, out, error } = await runToEnd(['create-key', '--name', 'ci', '--expires', '2099-01-01'], {
      DATA_DIR,
    });
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^ck_svc_dev_\w{49}\n$/) });
    expect(error).toContain('valid until 2099-01-01');
    token = out.trim();
  });

  test('the second start is fast, prints no token, and knows the keys; a second process is refused', async () => {
    const startedAt = performance.now();
    const first = runProcess(['start'], { DATA_DIR });
    const url = await first.ready();
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    expect(first.printed.out).not.toContain('ck_');
    expect(first.printed.out).toContain('create-key');
    expect(await isKnown(url, token)).toBe(true);
    expect(await isKnown(url, `${token.slice(0, -1)}!`)).toBe(false);

    const others = [['start'], ['create-key'], ['backup'], ['restore', 'nothing.tar.gz']];
    for (const ended of await Promise.all(others.map((command) => runToEnd(command, { DATA_DIR }))))
      expect(ended).toEqual({
        code: 2,
        out: '',
        error: expect.stringContaining(`another process (pid ${first.child.pid}) uses ${DATA_DIR}`),
      });

    first.child.kill('SIGKILL');
    await first.exit;
    const next = runProcess(['start'], { DATA_DIR });
    expect(await isKnown(await next.ready(), token)).toBe(true);
    next.child.kill('SIGTERM');
    expect(await next.exit).toBe(0);
  });
});

test('a running request ends before the process does', async () => {
  const { ready, child, exit } = runProcess([], { DATA_DIR });
  const { port } = new URL(await ready());
  // More than the buffers of a connection take: the answer ends when it is read.
  const answer = await new Promise<IncomingMessage>((resolve) =>
    get(
      { port, host: '127.0.0.1', path: '/docs/static/swagger-ui-bundle.js', agent: new Agent({ keepAlive: true }) },
      resolve,
    ),
  );
  child.kill('SIGTERM');
  await expect.poll(() => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => 'refused')).toBe('refused');
  expect(child.exitCode).toBe(null);
  let bytes = 0;
  for await (const part of answer) bytes += (part as Buffer).length;
  expect(bytes).toBe(Number(answer.headers['content-length']));
  expect(await exit).toBe(0);
});

test('commands and settings that are wrong end with 2 and say what is right', async () => {
  const [command, settings] = await Promise.all([
    runToEnd(['strat']),
    runToEnd(['start'], { PORT: 'x', LOG_LEVEL: 'loud' }),
  ]);
  expect(command).toMatchObject({ code: 2, out: '', error: expect.stringContaining('unknown command "strat"') });
  expect(settings.code).toBe(2);
  expect(settings.error.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^PORT: /),
    expect.stringMatching(/^LOG_LEVEL: /),
  ]);
});

test('help and config print what they should', async () => {
  const [help, config] = await Promise.all([runToEnd(['help']), runToEnd(['config'], { SECRET_KEYS })]);
  expect(help).toMatchObject({ code: 0, out: expect.stringContaining('create-key') });
  expect(config).toMatchObject({ code: 0, out: expect.stringMatching(/^SECRET_KEYS +\*{4} \(set\)/m) });
});
