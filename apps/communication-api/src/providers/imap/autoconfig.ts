import { SAXParser } from 'parse5-sax-parser';
import { type Net, readBounded } from '../../security/net.ts';
import type { ServerPlace } from './known-servers.ts';

/** Files of real hosts are about 2 kB long. */
const MAX_BYTES = 65_536;
const MAX_SERVERS = 20;
const MAX_VALUE = 255;

/** A server of a file, with the user's name as a pattern such as `%EMAILADDRESS%`. */
export interface DescribedServer extends ServerPlace {
  readonly user: string;
}

export interface Autoconfig {
  readonly imap: DescribedServer;
  readonly smtp: DescribedServer;
}

/**
 * The mail servers that a domain publishes, in Mozilla's format. The file is fetched by https from the domain itself,
 * so the owner of the domain wrote it. Undefined: there is no file, or it names no usable servers.
 */
export async function fetchAutoconfig(
  address: string,
  domain: string,
  net: Net,
  signal: AbortSignal,
): Promise<Autoconfig | undefined> {
  const query = new URLSearchParams({ emailaddress: address });
  const places = [
    `https://autoconfig.${domain}/mail/config-v1.1.xml?${query}`,
    `https://${domain}/.well-known/autoconfig/mail/config-v1.1.xml`,
  ];
  const files = places.map((place) => read(place, net, signal).catch(() => undefined));
  for (const file of files) {
    const found = await file;
    if (found !== undefined) return found;
  }
  return undefined;
}

async function read(place: string, net: Net, signal: AbortSignal): Promise<Autoconfig | undefined> {
  const response = await net.fetch(place, { signal, headers: { accept: 'text/xml, application/xml' } });
  if (response.status !== 200) {
    await response.body?.cancel();
    return undefined;
  }
  const { bytes, isCut } = await readBounded(response, MAX_BYTES);
  return isCut ? undefined : parseAutoconfig(bytes.toString('utf8'));
}

interface ServerElement {
  readonly kind: string;
  /** The texts of its elements, by their names in lower case. */
  readonly values: Map<string, string[]>;
}

/**
 * Reads the servers of a file. The reader is the HTML parser that the service already uses: it knows no DTD, no custom
 * entities and no other files, so a hostile file can only contain wrong values. It reads names in lower case.
 */
export function parseAutoconfig(text: string): Autoconfig | undefined {
  const servers: ServerElement[] = [];
  let server: ServerElement | undefined;
  let element: string | undefined;
  let value = '';
  const parser = new SAXParser();
  parser.on('startTag', ({ tagName, attrs }) => {
    if (tagName === 'incomingserver' || tagName === 'outgoingserver') {
      const type = attrs.find(({ name }) => name === 'type')?.value.toLowerCase() ?? '';
      server = { kind: `${tagName} ${type}`, values: new Map() };
      if (servers.length < MAX_SERVERS) servers.push(server);
    } else element = tagName;
    value = '';
  });
  parser.on('text', (part) => {
    if (value.length <= MAX_VALUE) value += part.text;
  });
  parser.on('endTag', ({ tagName }) => {
    if (tagName === 'incomingserver' || tagName === 'outgoingserver') server = undefined;
    else if (tagName === element) server?.values.set(element, [...(server.values.get(element) ?? []), value.trim()]);
    element = undefined;
  });
  parser.end(text);
  const usable = (kind: string): DescribedServer | undefined =>
    servers.filter((each) => each.kind === kind).flatMap((each) => describedServer(each) ?? [])[0];
  const [imap, smtp] = [usable('incomingserver imap'), usable('outgoingserver smtp')];
  return imap && smtp && { imap, smtp };
}

/** A server that takes a password over TLS. Undefined: it does not. */
function describedServer({ values }: ServerElement): DescribedServer | undefined {
  const first = (name: string): string => values.get(name)?.[0] ?? '';
  const [host, port, user] = [first('hostname').toLowerCase(), first('port'), first('username')];
  const encryption = { ssl: 'tls', starttls: 'starttls' }[first('sockettype').toLowerCase()];
  const ways = values.get('authentication') ?? [];
  const takesPassword = ways.length === 0 || ways.some((way) => /^(?:password-cleartext|plain)$/i.test(way));
  const isValid =
    /^[a-z0-9%][a-z0-9.%_-]{0,252}$/.test(host) &&
    /^\d{1,5}$/.test(port) &&
    user.length <= MAX_VALUE &&
    !/\p{Cc}/u.test(user);
  if (!isValid || !takesPassword || (encryption !== 'tls' && encryption !== 'starttls')) return undefined;
  return { host, port: Number(port), encryption, user: user === '' ? '%EMAILADDRESS%' : user };
}
