import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findOrInstall, foldersOnPath } from 'headgate-testbed/find-program';
import { startGuard } from 'headgate-testbed/guard';
import { freePort, until } from 'headgate-testbed/redis-server';
import { inject } from 'vitest';
import { cleanUpLater } from './clean-up.ts';
import type { Dovecot } from './dovecot.ts';

/** A real SMTP server for a test file. Users of Dovecot log in to it, and it delivers to Dovecot. */
export interface Postfix {
  readonly host: '127.0.0.1';
  /** STARTTLS is possible, and a login without it, too. */
  readonly submissionPort: number;
  /** With TLS from the beginning. */
  readonly submissionsPort: number;
  /** The server's log: each login, each refusal, and each delivery. */
  log(): string;
}

/** More lines for Dovecot's configuration file: Postfix checks passwords there. */
export const authSettings = (port: number): string => `
service auth {
  inet_listener {
    address = 127.0.0.1
    port = ${port}
  }
}
`;

/**
 * Starts a Postfix server on free ports of 127.0.0.1. It delivers emails for `example.test` to Dovecot, refuses
 * recipients without a mailbox there, and sends nothing to the outside. It ends with the test file.
 * @param authPort where Dovecot checks passwords: see `authSettings`
 * @param users the addresses that exist. Each user may send only as itself
 */
export async function startPostfix(
  dovecot: Pick<Dovecot, 'lmtpPort'>,
  authPort: number,
  users: readonly string[],
): Promise<Postfix> {
  const binary = findPostfix();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-postfix-'));
  const guard = startGuard(folder);
  cleanUpLater(() => guard.end());
  // The server runs as several users, which all read its settings.
  chmodSync(folder, 0o755);
  for (const name of ['queue', 'data']) mkdirSync(join(folder, name));
  execFileSync('chown', ['postfix', join(folder, 'data')]);
  const { cert, key } = inject('certificate');
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 });
  writeFileSync(join(folder, 'users'), users.map((user) => `${user} ${user}\n`).join(''));
  const [submissionPort, submissionsPort] = [await freePort(), await freePort()];
  writeFileSync(join(folder, 'main.cf'), mainSettings(folder, dovecot.lmtpPort, authPort));
  writeFileSync(join(folder, 'master.cf'), services(submissionPort, submissionsPort));
  const server = spawn(binary, ['-c', folder, 'start-fg'], { cwd: folder, stdio: 'ignore', detached: true });
  guard.watch(server);
  server.unref();
  cleanUpLater(() => end(server, binary, folder));
  const log = (): string => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '');
  await until(async () => {
    if (server.exitCode !== null) throw new Error(`Postfix ended with ${server.exitCode}: ${log()}`);
    return (await accepts(submissionPort)) && accepts(submissionsPort);
  }, 'Postfix accepts connections');
  return { host: '127.0.0.1', submissionPort, submissionsPort, log };
}

const mainSettings = (folder: string, lmtpPort: number, authPort: number): string => `
compatibility_level = 3.6
queue_directory = ${folder}/queue
data_directory = ${folder}/data
maillog_file = ${folder}/log
maillog_file_prefixes = ${folder}
myhostname = mail.example.test
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mydestination =
mynetworks =
alias_maps =
alias_database =
message_size_limit = 50000000
virtual_mailbox_domains = example.test
virtual_mailbox_maps = texthash:${folder}/users
virtual_transport = lmtp:inet:127.0.0.1:${lmtpPort}
default_transport = error:the tests send nothing to the outside
smtpd_tls_cert_file = ${folder}/cert.pem
smtpd_tls_key_file = ${folder}/key.pem
smtpd_tls_security_level = may
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:${authPort}
smtpd_sender_login_maps = texthash:${folder}/users
smtpd_sender_restrictions = reject_sender_login_mismatch
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = reject_unlisted_recipient
`;

/** Without chroot, so that the folder need not contain a system. */
const services = (submissionPort: number, submissionsPort: number): string => `
127.0.0.1:${submissionPort} inet n - n - - smtpd
127.0.0.1:${submissionsPort} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`;

/** Whether a server accepts connections at a port. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}

async function end(server: ChildProcess, binary: string, folder: string): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exit = new Promise((resolve) => server.once('exit', resolve));
  server.ref();
  // Our child is a script. The server is a child of it, and would survive it.
  execFileSync(binary, ['-c', folder, 'stop'], { stdio: 'ignore' });
  await exit;
}

/**
 * The Postfix program to run: POSTFIX_BIN, the one on the PATH, or one that is installed now, if this process may do so.
 * @throws Error if none is found, or if this process is not root: Postfix only starts as root
 */
function findPostfix(): string {
  const advice = 'The tests need Postfix 3, and root to start it: install the package postfix, or set POSTFIX_BIN.';
  if (process.getuid?.() !== 0) throw new Error(advice);
  const named = process.env.POSTFIX_BIN;
  const binaries =
    named === undefined ? [...foldersOnPath(), '/usr/sbin'].map((folder) => join(folder, 'postfix')) : [named];
  return findOrInstall(() => binaries.find((binary) => existsSync(binary)), 'postfix', advice);
}
