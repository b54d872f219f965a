import { createSocket, type RemoteInfo } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';
import { cleanUpLater } from './clean-up.ts';

const TYPES = { A: 1, CNAME: 5, MX: 15, TXT: 16, AAAA: 28, SRV: 33 } as const;
type RecordType = keyof typeof TYPES;

/** A DNS server on 127.0.0.1. A test can change its answers at any time. */
export interface DnsServer {
  /** For `Resolver.setServers`. */
  readonly address: string;
  /** Asks this server. It is patient with a busy machine, unless the server is silent. */
  readonly resolver: Resolver;
  /** The queries, for example `A mail.example.test`. */
  readonly queries: readonly string[];
  /**
   * The values by query, such as `{ 'A mail.example.test': ['127.0.0.1'] }`, and with numbers in front of the name
   * `10 mx.example.test` (MX) or `0 1 993 imap.example.test` (SRV). A query that is missing: no such name.
   */
  records: Readonly<Record<string, readonly string[]>>;
  /** Whether it does not answer, as a server that is down. */
  isSilent: boolean;
}

export async function startDnsServer(): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const queries: string[] = [];
  const dns = { address: '', queries, records: {} as DnsServer['records'], isSilent: false };
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, type, question } = readQuestion(query);
    queries.push(`${type} ${name}`);
    if (dns.isSilent) return;
    const values = dns.records[`${type} ${name}`];
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    // An answer with recursion; the code 3: no such name.
    head.writeUInt16BE(values === undefined ? 0x8583 : 0x8580, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(values?.length ?? 0, 6);
    socket.send(
      Buffer.concat([head, question, ...(values ?? []).map((value) => answer(type, value))]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  cleanUpLater(() => socket.close());
  dns.address = `127.0.0.1:${socket.address().port}`;
  return Object.assign(dns, { resolver: resolverOf(dns) });
}

function resolverOf(dns: Pick<DnsServer, 'address' | 'isSilent'>): Resolver {
  const withTimeout = (timeout: number): Resolver => {
    const resolver = new Resolver({ timeout, tries: 1 });
    resolver.setServers([dns.address]);
    return resolver;
  };
  const [patient, impatient] = [withTimeout(10_000), withTimeout(200)];
  return new Proxy(patient, {
    get: (_, name) => {
      const resolver = dns.isSilent ? impatient : patient;
      const member: unknown = Reflect.get(resolver, name);
      return typeof member === 'function' ? member.bind(resolver) : member;
    },
  });
}

function readQuestion(query: Buffer): { readonly name: string; readonly type: RecordType; readonly question: Buffer } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const code = query.readUInt16BE(at + 1);
  const type = (Object.keys(TYPES) as RecordType[]).find((each) => TYPES[each] === code);
  if (type === undefined) throw new Error(`The DNS server of the tests does not know the type ${code}.`);
  return { name: labels.join('.').toLowerCase(), type, question: query.subarray(12, at + 5) };
}

/** A record for the name of the question, without a time to live. */
function answer(type: RecordType, value: string): Buffer {
  const data = dataOf(type, value);
  const head = Buffer.from([0xc0, 0x0c, 0, TYPES[type], 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, data]);
}

function dataOf(type: RecordType, value: string): Buffer {
  if (type === 'TXT') return Buffer.from([value.length, ...Buffer.from(value)]);
  const words = value.split(' ');
  if (words.length > 1) return Buffer.concat([...words.slice(0, -1).map(uint16), nameOf(words.at(-1) ?? '')]);
  if (isIPv4(value)) return Buffer.from(value.split('.').map(Number));
  if (type === 'AAAA') return Buffer.from(value.split(':').flatMap((group) => [...Buffer.from(group, 'hex')]));
  return nameOf(value);
}

const uint16 = (text: string): Buffer => Buffer.of(Number(text) >> 8, Number(text) & 0xff);

const nameOf = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .filter((label) => label !== '')
      .map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.of(0),
  ]);
