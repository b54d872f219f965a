import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificate } from 'headgate-testbed/certificate';
import { findOrInstall, foldersOnPath } from 'headgate-testbed/find-program';
import { killWithChildren, startGuard } from 'headgate-testbed/guard';
import { freePort, until } from 'headgate-testbed/redis-server';
import { type Owner, serverUser } from 'headgate-testbed/server-user';
import { inject } from 'vitest';
import { cleanUpLater } from './clean-up.ts';
import { secret } from './secret.ts';

/** The syntax of the settings changed in 2.4. */
const VERSION = '2.3';
const ATTEMPTS = 5;
const ONE_SECOND_MS = 1_100;

/** A user of a mail server. */
export interface MailUser {
  readonly address: string;
  readonly password: string;
}

/** A real IMAP server for a test file. The certificate of the tests is its certificate. */
export interface Dovecot {
  readonly host: '127.0.0.1';
  /** Without TLS at first. STARTTLS is possible, and a login without it, too. */
  readonly imapPort: number;
  /** With TLS from the beginning. */
  readonly imapsPort: number;
  /** Takes emails for its users by LMTP, for example from Postfix. */
  readonly lmtpPort: number;
  /** Adds a user, or changes the password of one. Mailboxes are made at the first login. */
  user(address: string, password?: string): MailUser;
  /** The emails in a folder of a user, as they are stored, in the order of their arrival. */
  emails(address: string, folder?: string): readonly string[];
  /** The server's log: each login, each failed login, and each end of a connection. */
  log(): string;
  /** Kills the server with all its connections. */
  kill(): Promise<void>;
  /** Starts a killed server again on the same ports, with its users and emails. */
  restart(): Promise<void>;
}

/**
 * Starts a Dovecot server on free ports of 127.0.0.1. Waits until it accepts connections. It ends with the test file.
 * @param settings more lines for its configuration file, in the syntax of Dovecot 2.3
 * @param certificate default: the one that every test process trusts
 */
export async function startDovecot(
  settings = '',
  certificate: Pick<Certificate, 'cert' | 'key'> = inject('certificate'),
): Promise<Dovecot> {
  const binary = findDovecot();
  const owner = serverUser();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-dovecot-'));
  const guard = startGuard(folder);
  cleanUpLater(() => guard.end());
  writeFileSync(join(folder, 'cert.pem'), certificate.cert);
  writeFileSync(join(folder, 'key.pem'), certificate.key, { mode: 0o600 });
  for (const name of ['run', 'state', 'mail', 'users']) mkdirSync(join(folder, name));
  if (owner !== undefined)
    for (const name of ['', ...readdirSync(folder)]) chownSync(join(folder, name), owner.uid, owner.gid);
  for (let attempt = 1; ; attempt++) {
    const [imapPort, imapsPort, lmtpPort] = [await freePort(), await freePort(), await freePort()];
    const ports = { imapPort, imapsPort, lmtpPort };
    writeFileSync(join(folder, 'dovecot.conf'), configuration({ folder, owner, ports, settings }));
    let server: ChildProcess;
    const start = async (): Promise<void> => {
      server = spawn(binary, ['-F', '-c', join(folder, 'dovecot.conf')], {
        cwd: folder,
        stdio: 'ignore',
        // A separate process group, so that Ctrl+C does not end the server before the tests.
        detached: true,
        ...owner,
      });
      guard.watch(server);
      server.unref();
      await accepts(server, folder);
    };
    const kill = async (): Promise<void> => killWithChildren(server);
    try {
      await start();
    } catch (error) {
      await kill().catch(() => {});
      // Another process may take a port meanwhile.
      if (attempt === ATTEMPTS) throw error;
      continue;
    }
    cleanUpLater(kill);
    return {
      host: '127.0.0.1',
      ...ports,
      user(address, password = secret()) {
        const file = join(folder, 'users', address);
        // The server checks a file for changes at most once per second, so each user gets a separate file.
        if (existsSync(file)) pauseSync(ONE_SECOND_MS);
        writeFileSync(file, `${address}:{PLAIN}${password}\n`);
        return { address, password };
      },
      emails: (address, name = 'INBOX') => emailsIn(join(folder, 'mail', address, name === 'INBOX' ? '' : `.${name}`)),
      log: () => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : ''),
      kill,
      restart: start,
    };
  }
}

interface Configuration {
  readonly folder: string;
  readonly owner: Owner | undefined;
  readonly ports: Pick<Dovecot, 'imapPort' | 'imapsPort' | 'lmtpPort'>;
  readonly settings: string;
}

/** All processes of the server run as the same user, so that it also runs if this process is not root. */
function configuration({ folder, owner, ports, settings }: Configuration): string {
  const nameOf = (option: string): string =>
    execFileSync('id', [option, String(owner?.uid ?? process.getuid?.())], { encoding: 'utf8' }).trim();
  const [user, group] = [nameOf('-nu'), nameOf('-ng')];
  return `
protocols = imap lmtp
listen = 127.0.0.1
base_dir = ${folder}/run
state_dir = ${folder}/state
log_path = ${folder}/log
default_internal_user = ${user}
default_internal_group = ${group}
default_login_user = ${user}
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:${folder}/mail/%u
ssl = yes
ssl_cert = <${folder}/cert.pem
ssl_key = <${folder}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
# Many tests fail to log in on purpose; the penalty would slow down the next ones.
service anvil {
  chroot =
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${ports.imapPort}
  }
  inet_listener imaps {
    port = ${ports.imapsPort}
  }
}
service lmtp {
  chroot =
  inet_listener lmtp {
    port = ${ports.lmtpPort}
  }
}
service stats {
  chroot =
}
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%u ${folder}/users/%u
  # There is no file: there is no such user.
  result_internalfail = continue
}
passdb {
  driver = static
  args = password=${randomUUID()}
}
userdb {
  driver = static
  args = uid=${user} gid=${group} home=${folder}/mail/%u
}
namespace inbox {
  inbox = yes
  mailbox Sent {
    auto = create
    special_use = \\Sent
  }
}
${settings}
`;
}

const pauseSync = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Waits until this process accepts connections, and not another process on the same port. */
async function accepts(server: ChildProcess, folder: string): Promise<void> {
  let failure: Error | undefined;
  server.once('error', (error) => {
    failure = error;
  });
  const isReady = (): boolean => {
    if (failure !== undefined) throw failure;
    const log = existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '';
    if (server.exitCode !== null) throw new Error(`Dovecot ended with ${server.exitCode}: ${log}`);
    // All ports are open before the first process writes this line and its id.
    const file = join(folder, 'run', 'master.pid');
    return existsSync(file) && readFileSync(file, 'utf8').trim() === String(server.pid) && log.includes('starting up');
  };
  await until(isReady, 'Dovecot accepts connections');
}

/** The emails of a folder in the format Maildir. */
function emailsIn(folder: string): string[] {
  const files = ['new', 'cur'].flatMap((state) => {
    const place = join(folder, state);
    return existsSync(place) ? readdirSync(place).map((name) => ({ name, path: join(place, name) })) : [];
  });
  return files.sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ path }) => readFileSync(path, 'utf8'));
}

/**
 * The Dovecot program to run: DOVECOT_BIN, the one on the PATH, or one that is installed now, if this process may do so.
 * @throws Error if none is found: tests that need a server must not be left out silently
 */
function findDovecot(): string {
  const advice = `The tests need Dovecot ${VERSION} with IMAP and LMTP: install dovecot-imapd and dovecot-lmtpd, or set DOVECOT_BIN.`;
  const named = process.env.DOVECOT_BIN;
  const folders =
    named === undefined ? [...foldersOnPath(), '/usr/sbin'].map((each) => join(each, 'dovecot')) : [named];
  const find = (service: string) => (): string | undefined =>
    folders.find((binary) => existsSync(binary) && runs(binary, service));
  findOrInstall(find('imap'), 'dovecot-imapd', advice);
  return findOrInstall(find('lmtp'), 'dovecot-lmtpd', advice);
}

/** Whether a Dovecot of the right version supports a service, such as `imap`. */
function runs(binary: string, service: string): boolean {
  const textOf = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { encoding: 'utf8' }).trim();
  if (!textOf(binary, '--version').startsWith(`${VERSION}.`)) return false;
  return existsSync(join(textOf('doveconf', '-d', '-h', 'libexec_dir'), service));
}
