import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Overrides } from '../config/config.ts';
import { isObject, objectOrEmpty, readJson } from '../config/json.ts';
import { urlOf } from '../server/listen.ts';

/** The address that a health check asks. */
export interface HealthTarget {
  readonly url: string;
  /**
   * Whether the certificate must be valid for the host of the URL. The certificate of a config's listener is valid for
   * the names that clients use, not for the address of the listener, and the question contains no secret.
   */
  readonly verifies: boolean;
}

/** A gateway's health answer in words. */
export interface HealthVerdict {
  readonly isReady: boolean;
  readonly text: string;
}

/**
 * The listener of a config that is asked: `admin`, or else `listen`. Nothing else of the config is read: if a bad edit
 * spoils the file while a gateway runs, the gateway is still healthy.
 * @returns a text if the config names no listener to ask
 */
export function targetIn(
  config: string,
  flags: Pick<Overrides, 'host' | 'port' | 'admin-port'>,
): HealthTarget | string {
  const json = readJson(config);
  if ('issue' in json) return json.issue.reason;
  const file = objectOrEmpty(json.value);
  const { host, port, 'admin-port': adminPort } = flags;
  const main = listenerIn(file.listen, { host, port, defaultPort: 8080 });
  const hasAdmin = file.admin !== undefined || adminPort !== undefined;
  const admin = hasAdmin ? listenerIn(file.admin, { port: adminPort, defaultPort: 8081 }) : undefined;
  // A health check presents no certificate.
  const asked = [admin, main].find((listener) => listener !== undefined && !listener.wantsCertificate);
  if (asked === undefined) return 'each listener wants a certificate of its clients: use --url';
  if (asked.port === 0) return 'the port is 0, so the config does not say which one it is: use --url';
  const url = urlOf({ host: LOCAL.get(asked.host) ?? asked.host, port: asked.port });
  if (!URL.canParse(url)) return `${url} is not the address of a listener: use --url`;
  return { url: `${asked.isTls ? url.replace('http:', 'https:') : url}/readyz`, verifies: false };
}

/** @param url without a path, /readyz is asked */
export function targetAt(url: string): HealthTarget | undefined {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  if (parsed.pathname === '/') parsed.pathname = '/readyz';
  return { url: parsed.href, verifies: true };
}

/** The local address for a listener on all addresses. */
const LOCAL: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/** The flags of a listener. */
interface ListenerFlags {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly defaultPort: number;
}

function listenerIn(value: unknown, flags: ListenerFlags) {
  const { host, port, tls } = objectOrEmpty(value);
  const ofFile = typeof port === 'number' ? port : flags.defaultPort;
  return {
    host: flags.host ?? (typeof host === 'string' ? host : '127.0.0.1'),
    port: flags.port === undefined ? ofFile : Number(flags.port),
    isTls: isObject(tls),
    wantsCertificate: objectOrEmpty(tls).clientCa !== undefined,
  };
}

/** Asks once. Never rejects. */
export function askHealth({ url, verifies }: HealthTarget, timeoutMs: number): Promise<HealthVerdict> {
  return new Promise((resolve) => {
    const { origin, pathname } = new URL(url);
    // The rest of the URL may contain a password.
    const fail = (why: string): void => resolve({ isReady: false, text: `${origin}${pathname}: ${why}` });
    const open = url.startsWith('https:') ? requestHttps : requestHttp;
    const signal = AbortSignal.timeout(timeoutMs);
    const request = open(url, { signal, agent: false, rejectUnauthorized: verifies }, (response) => {
      const { statusCode = 0 } = response;
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body = `${body}${chunk}`.slice(0, 200);
      });
      response.once('end', () => {
        if (statusCode === 200) resolve({ isReady: true, text: statusIn(body) ?? 'ok' });
        else fail(`status ${statusCode}${statusIn(body) === undefined ? '' : `, ${statusIn(body)}`}`);
      });
      response.once('error', () => fail(signal.aborted ? tooLate(timeoutMs) : 'the response broke off'));
    });
    // Node would close the connection without another event, and the command would end with 0.
    request.once('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      fail(`status ${statusCode}`);
    });
    request.once('error', (error: NodeJS.ErrnoException) => {
      fail(signal.aborted ? tooLate(timeoutMs) : (error.code ?? error.message));
    });
    request.end();
  });
}

const tooLate = (timeoutMs: number): string => `no response within ${timeoutMs} ms`;

/** The word of a health check's body. */
function statusIn(body: string): string | undefined {
  return /^\{"status":"([a-z]+)"\}$/.exec(body)?.[1];
}
