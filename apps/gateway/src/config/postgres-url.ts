/** The certificate check of a connection, as libpq names it in `sslmode`. */
export type SslMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

/** The parts of a `postgres://` URL. */
export interface PostgresUrl {
  /** A name or address; or the folder of a Unix socket, which begins with `/`. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  readonly password: string | undefined;
  /** Undefined if the URL does not say it. */
  readonly sslMode: SslMode | undefined;
}

const DEFAULT_PORT = 5_432;
const SSL_MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'] satisfies SslMode[];
const PATTERN =
  /^postgres(?:ql)?:\/\/([^@/?#]+)@(\[[0-9a-fA-F:.]+\]|[^:/?#[\],]*)(?::(\d{1,5}))?\/([^/?#]+)(?:\?([^#]*))?$/;
const FORM = 'must be postgres://user[:password]@host[:port]/database';

/** Whether a text is meant as the URL of a PostgreSQL server. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:/i.test(text);
}

/** Reads `postgres://user[:password]@host[:port]/database[?sslmode=…]`. No reason shows a part that can be secret. */
export function parsePostgresUrl(text: string): PostgresUrl | { readonly reason: string } {
  const match = PATTERN.exec(text);
  if (match === null)
    return { reason: `${FORM}, with special characters of the password percent-encoded, such as %40 for @` };
  const [, userinfo, name, port, path, query] = match as unknown as [string, string, string, string?, string?, string?];
  const parameters = new URLSearchParams(query ?? '');
  const unknown = [...parameters.keys()].find((key) => !['sslmode', 'host'].includes(key));
  // A password may stand there too.
  if (unknown !== undefined) return { reason: 'the URL may have only the parameters sslmode and host' };
  const sslMode = parameters.get('sslmode') ?? undefined;
  if (sslMode !== undefined && !SSL_MODES.includes(sslMode))
    return { reason: `sslmode must be one of ${SSL_MODES.join(', ')}` };
  const socket = parameters.get('host');
  if (socket !== null && (name !== '' || !socket.startsWith('/')))
    return { reason: 'the parameter host must be the folder of a Unix socket, and needs an empty host in the URL' };
  const host = socket ?? name.replace(/^\[|\]$/g, '');
  const number = Number(port ?? DEFAULT_PORT);
  if (host === '' || number < 1 || number > 65_535) return { reason: FORM };
  const [user, ...rest] = userinfo.split(':') as [string, ...string[]];
  try {
    const [username, database] = [decodeURIComponent(user), decodeURIComponent(path as string)];
    const password = rest.length === 0 ? undefined : decodeURIComponent(rest.join(':'));
    if (username === '') return { reason: FORM };
    return { host, port: number, database, username, password, sslMode: sslMode as SslMode | undefined };
  } catch {
    return { reason: 'the URL has a % that begins no percent-encoded character: write %25' };
  }
}
