import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { requirePeer } from 'headgate-bench/peers';
import { freePort } from 'headgate-bench/redis-server';

const START_MS = 20_000;

/** Accepts every email of its clients, and sends it to one mail server. */
const plugin = (smtpPort) => `
exports.hook_connect = (next, connection) => { connection.relaying = true; next(); };
exports.hook_rcpt = (next) => next(OK);
exports.hook_get_mx = (next) => next(OK, { exchange: '127.0.0.1', port: ${smtpPort}, priority: 0 });
`;

/**
 * Starts Haraka, a mail server that stores each email in a queue on the disk, answers, and then sends it on.
 * @param smtpPort of the mail server that it sends to
 * @returns `port`, `pid` and `stop()`
 */
export async function startHaraka(smtpPort) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-haraka-'));
  const port = await freePort();
  const files = {
    'config/smtp.ini': `listen=127.0.0.1:${port}\n`,
    'config/plugins': 'to_sink\n',
    'config/me': 'haraka.example.com\n',
    'config/outbound.ini': 'enable_tls=false\n',
    'config/log.ini': 'level=ERROR\n',
    'plugins/to_sink.js': plugin(smtpPort),
  };
  const program = requirePeer.resolve('Haraka/package.json').replace('/package.json', '');
  cpSync(join(program, 'config'), join(folder, 'config'), { recursive: true });
  for (const name of ['plugins', 'queue']) mkdirSync(join(folder, name));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const child = spawn(process.execPath, [join(program, 'bin/haraka'), '-c', folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const end = performance.now() + START_MS;
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`Haraka ended with code ${child.exitCode}`);
    if (performance.now() > end) throw new Error(`Haraka did not listen within ${START_MS} ms`);
    await wait(50);
  }
  return {
    port,
    pid: child.pid,
    stop() {
      process.off('exit', kill);
      kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const accepts = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => resolve(true) ?? socket.destroy())
      .once('error', () => resolve(false));
  });
