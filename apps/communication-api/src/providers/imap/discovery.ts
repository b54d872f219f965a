import { domainToASCII } from 'node:url';
import type { MailRecords } from '../../security/mail-records.ts';
import type { Net } from '../../security/net.ts';
import { type Autoconfig, fetchAutoconfig } from './autoconfig.ts';
import type { MailServer } from './credentials.ts';
import {
  isInDomain,
  type KnownServers,
  type ServerPlace,
  type SignInHost,
  serversBehind,
  serversOfDomain,
  signInHostOf,
} from './known-servers.ts';

/** For all questions together. */
const TIMEOUT_MS = 6_000;

/** A server, and the user there. */
export type ServerSettings = Omit<MailServer, 'password'>;

/** Both servers of a mailbox. */
export interface MailSettings {
  readonly imap: ServerSettings;
  readonly smtp: ServerSettings;
}

/** The known facts about the servers of an address. */
export type Discovered =
  /** The servers. The password may be sent to them. */
  | { readonly kind: 'servers'; readonly settings: MailSettings }
  /** Servers that may be wrong, or a forgery of DNS. The user must agree before a password is sent to them. */
  | { readonly kind: 'guess'; readonly settings: MailSettings; readonly isKnown: boolean }
  /** The mailbox is at a host whose users sign in at its own site. */
  | { readonly kind: 'sign-in'; readonly host: SignInHost };

/** Finds the servers of an address. */
export type Discover = (address: string, net: Net, signal: AbortSignal) => Promise<Discovered>;

/**
 * Looks in a table of large hosts, then asks the domain itself: for its autoconfig file, for the SRV records of RFC
 * 6186, and for the MX records, which show at which large host a domain is.
 */
export const createDiscovery =
  (records: Pick<MailRecords, 'services' | 'mailHosts'>): Discover =>
  async (address, net, signal) => {
    const domain = domainOf(address);
    const known = domain === undefined ? undefined : serversOfDomain(domain);
    if (known !== undefined) return resultOf(known, address);
    if (domain === undefined) return guess(address);
    const done = new AbortController();
    const deadline = AbortSignal.any([signal, done.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    // All questions are asked at the same time. The first answer in the order of trust counts.
    const file = fetchAutoconfig(address, domain, net, deadline);
    const services = within(publishedServers(domain, records), deadline, undefined);
    const mailHosts = within(records.mailHosts(domain), deadline, []);
    try {
      const described = await file;
      if (described !== undefined) return describedResult(described, address, domain);
      const named = await services;
      const published = named && publishedResult(named, address, domain);
      if (published !== undefined && published.kind !== 'guess') return published;
      const [host] = (await mailHosts).flatMap((each) => serversBehind(each) ?? []);
      return host === undefined ? (published ?? guess(address, domain)) : resultOf(host, address);
    } finally {
      done.abort();
    }
  };

/** Undefined: no name in DNS can contain mail servers. */
function domainOf(address: string): string | undefined {
  const text = address.slice(address.lastIndexOf('@') + 1);
  // domainToASCII reads these as parts of a URL.
  if (/[/?#:@%\\[\]]/.test(text)) return undefined;
  const domain = domainToASCII(text).toLowerCase();
  return /^(?:[a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}$/.test(domain) ? domain : undefined;
}

function resultOf(known: KnownServers | SignInHost, address: string): Discovered {
  if (typeof known === 'string') return { kind: 'sign-in', host: known };
  return { kind: 'servers', settings: settingsOf(known, address) };
}

/** The settings of a user of a large host. */
export const settingsOf = ({ imap, smtp, imapUser }: KnownServers, address: string): MailSettings => ({
  imap: { ...imap, user: imapUser === 'name' ? nameOf(address) : address },
  smtp: { ...smtp, user: address },
});

const nameOf = (address: string): string => address.slice(0, address.lastIndexOf('@'));

function describedResult({ imap, smtp }: Autoconfig, address: string, domain: string): Discovered {
  const fill = (text: string): string =>
    text
      .replaceAll(/%EMAILADDRESS%/gi, () => address)
      .replaceAll(/%EMAILLOCALPART%/gi, () => nameOf(address))
      .replaceAll(/%EMAILDOMAIN%/gi, () => domain);
  const host = signInHostOf(imap.host);
  if (host !== undefined) return { kind: 'sign-in', host };
  const filled = (server: typeof imap): ServerSettings => ({
    ...server,
    host: fill(server.host),
    user: fill(server.user),
  });
  return { kind: 'servers', settings: { imap: filled(imap), smtp: filled(smtp) } };
}

/** The servers that a domain names in DNS. One of them may be missing. */
interface PublishedServers {
  readonly imap: ServerPlace | undefined;
  readonly smtp: ServerPlace | undefined;
}

/** RFC 6186, and RFC 8314 for `_submissions`. */
async function publishedServers(
  domain: string,
  records: Pick<MailRecords, 'services'>,
): Promise<PublishedServers | undefined> {
  const first = async (service: string, encryption: ServerPlace['encryption']): Promise<ServerPlace | undefined> => {
    const [place] = await records.services(`${service}._tcp.${domain}`);
    return place && { ...place, encryption };
  };
  const [imaps, imap, submissions, submission] = await Promise.all([
    first('_imaps', 'tls'),
    first('_imap', 'starttls'),
    first('_submissions', 'tls'),
    first('_submission', 'starttls'),
  ]);
  const found = { imap: imaps ?? imap, smtp: submissions ?? submission };
  return found.imap === undefined && found.smtp === undefined ? undefined : found;
}

function publishedResult({ imap, smtp }: PublishedServers, address: string, domain: string): Discovered {
  const host = imap && signInHostOf(imap.host);
  if (host !== undefined) return { kind: 'sign-in', host };
  const usual = usualSettings(address, domain);
  const settings = {
    imap: imap === undefined ? usual.imap : { ...imap, user: address },
    smtp: smtp === undefined ? usual.smtp : { ...smtp, user: address },
  };
  // DNS can be forged. Only the owner of the domain can get a certificate for a host in it, so that is safe (RFC 6186,
  // 6).
  const isOwn = [imap, smtp].every((place) => place !== undefined && isInDomain(place.host, domain));
  return isOwn ? { kind: 'servers', settings } : { kind: 'guess', settings, isKnown: imap !== undefined };
}

/** The settings of many domains. */
const usualSettings = (address: string, domain: string): MailSettings => ({
  imap: { host: `imap.${domain}`, port: 993, encryption: 'tls', user: address },
  smtp: { host: `smtp.${domain}`, port: 465, encryption: 'tls', user: address },
});

const guess = (address: string, domain = ''): Discovered => {
  const { imap, smtp } = usualSettings(address, domain);
  const settings = domain === '' ? { imap: { ...imap, host: '' }, smtp: { ...smtp, host: '' } } : { imap, smtp };
  return { kind: 'guess', settings, isKnown: false };
};

/** A look-up cannot be cancelled, so after the signal it is left alone. */
function within<Value>(value: Promise<Value>, signal: AbortSignal, otherwise: Value): Promise<Value> {
  const late = new Promise<Value>((resolve) => {
    if (signal.aborted) resolve(otherwise);
    signal.addEventListener('abort', () => resolve(otherwise), { once: true });
  });
  return Promise.race([value, late]);
}
