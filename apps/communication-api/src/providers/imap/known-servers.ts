import type { MailServer } from './credentials.ts';

/** A server without its user. */
export type ServerPlace = Pick<MailServer, 'host' | 'port' | 'encryption'>;

/** Both servers of a mail host, and how its users log in. */
export interface KnownServers {
  readonly imap: ServerPlace;
  readonly smtp: ServerPlace;
  /** The user's name at the IMAP server. Default: the whole address. SMTP always uses the address. */
  readonly imapUser?: 'name';
}

/** Mail hosts whose users sign in at the host's own site, with a separate provider. */
export type SignInHost = 'google' | 'outlook';

export const GOOGLE: KnownServers = at('imap.gmail.com', 'smtp.gmail.com');
export const OUTLOOK: KnownServers = startTls('outlook.office365.com', 'smtp.office365.com');

/** IMAP and SMTP with TLS from the beginning. */
function at(imap: string, smtp: string): KnownServers {
  return {
    imap: { host: imap, port: 993, encryption: 'tls' },
    smtp: { host: smtp, port: 465, encryption: 'tls' },
  };
}

/** IMAP with TLS from the beginning, SMTP with STARTTLS. */
function startTls(imap: string, smtp: string): KnownServers {
  return { ...at(imap, smtp), smtp: { host: smtp, port: 587, encryption: 'starttls' } };
}

const APPLE: KnownServers = { ...startTls('imap.mail.me.com', 'smtp.mail.me.com'), imapUser: 'name' };
const FASTMAIL = at('imap.fastmail.com', 'smtp.fastmail.com');
const GMX = at('imap.gmx.net', 'mail.gmx.net');
const GMX_COM = at('imap.gmx.com', 'mail.gmx.com');
const MAILBOX_ORG = at('imap.mailbox.org', 'smtp.mailbox.org');
const MAIL_RU = at('imap.mail.ru', 'smtp.mail.ru');
const POSTEO = at('posteo.de', 'posteo.de');
const YAHOO = at('imap.mail.yahoo.com', 'smtp.mail.yahoo.com');
const YANDEX = at('imap.yandex.com', 'smtp.yandex.com');
const ZOHO = at('imap.zoho.com', 'smtp.zoho.com');
const ZOHO_EU = at('imap.zoho.eu', 'smtp.zoho.eu');
const IONOS_DE = at('imap.ionos.de', 'smtp.ionos.de');
const IONOS = at('imap.ionos.com', 'smtp.ionos.com');

/** The servers of large hosts, by the domain of the address. */
const BY_DOMAIN: Readonly<Record<string, KnownServers | SignInHost>> = {
  ...each('google', 'gmail.com', 'googlemail.com'),
  ...each('outlook', 'outlook.com', 'outlook.de', 'outlook.fr', 'hotmail.com', 'hotmail.de', 'hotmail.fr'),
  ...each('outlook', 'hotmail.co.uk', 'hotmail.it', 'hotmail.es', 'live.com', 'live.de', 'live.fr', 'live.co.uk'),
  ...each('outlook', 'msn.com'),
  ...each(YAHOO, 'yahoo.com', 'yahoo.de', 'yahoo.fr', 'yahoo.it', 'yahoo.es', 'yahoo.co.uk', 'yahoo.ca', 'yahoo.in'),
  ...each(YAHOO, 'yahoo.com.br', 'yahoo.com.au', 'ymail.com', 'rocketmail.com'),
  ...each(APPLE, 'icloud.com', 'me.com', 'mac.com'),
  ...each(GMX, 'gmx.de', 'gmx.net', 'gmx.at', 'gmx.ch', 'gmx.eu', 'gmx.info', 'gmx.org'),
  ...each(GMX_COM, 'gmx.com', 'gmx.us', 'gmx.co.uk', 'gmx.fr', 'gmx.es', 'gmx.it'),
  ...each(FASTMAIL, 'fastmail.com', 'fastmail.fm', 'fastmail.net', 'fastmail.org'),
  ...each(MAILBOX_ORG, 'mailbox.org'),
  ...each(MAIL_RU, 'mail.ru', 'inbox.ru', 'list.ru', 'bk.ru', 'internet.ru'),
  ...each(POSTEO, 'posteo.de', 'posteo.net', 'posteo.at', 'posteo.ch', 'posteo.eu', 'posteo.org'),
  ...each(YANDEX, 'yandex.com', 'yandex.ru', 'ya.ru', 'yandex.by', 'yandex.kz', 'yandex.com.tr'),
  ...each(ZOHO, 'zoho.com', 'zohomail.com'),
  ...each(ZOHO_EU, 'zohomail.eu'),
  ...each(at('imap.aol.com', 'smtp.aol.com'), 'aol.com', 'aol.de', 'aim.com'),
  ...each(startTls('imap.web.de', 'smtp.web.de'), 'web.de'),
  ...each(at('secureimap.t-online.de', 'securesmtp.t-online.de'), 't-online.de', 'magenta.de'),
  ...each(startTls('mx.freenet.de', 'mx.freenet.de'), 'freenet.de'),
  ...each(at('imaps.bluewin.ch', 'smtpauths.bluewin.ch'), 'bluewin.ch'),
  ...each(at('imap.orange.fr', 'smtp.orange.fr'), 'orange.fr', 'wanadoo.fr'),
  ...each(at('imap.free.fr', 'smtp.free.fr'), 'free.fr'),
  ...each(at('imap.laposte.net', 'smtp.laposte.net'), 'laposte.net'),
  ...each(at('imapmail.libero.it', 'smtp.libero.it'), 'libero.it'),
  ...each(startTls('imap.comcast.net', 'smtp.comcast.net'), 'comcast.net'),
  ...each(at('imap.qq.com', 'smtp.qq.com'), 'qq.com', 'foxmail.com'),
  ...each(at('imap.163.com', 'smtp.163.com'), '163.com'),
};

/** The servers of hosts for the domains of others, by the end of the name of the host that takes their emails. */
const BY_MAIL_HOST: Readonly<Record<string, KnownServers | SignInHost>> = {
  ...each('google', 'google.com', 'googlemail.com', 'smtp.goog'),
  ...each('outlook', 'protection.outlook.com', 'mx.microsoft'),
  ...each(YAHOO, 'yahoodns.net'),
  ...each(FASTMAIL, 'messagingengine.com'),
  ...each(MAILBOX_ORG, 'mailbox.org'),
  ...each(YANDEX, 'mx.yandex.net'),
  ...each(ZOHO, 'zoho.com', 'zohomail.com'),
  ...each(ZOHO_EU, 'zoho.eu', 'zohomail.eu'),
  ...each(IONOS_DE, 'kundenserver.de', 'ionos.de'),
  ...each(IONOS, 'ionos.com', 'perfora.net'),
  ...each(at('imap.strato.de', 'smtp.strato.de'), 'rzone.de'),
  ...each(at('ssl0.ovh.net', 'ssl0.ovh.net'), 'mail.ovh.net'),
  ...each(at('mail.gandi.net', 'mail.gandi.net'), 'mail.gandi.net'),
  ...each(at('imap.migadu.com', 'smtp.migadu.com'), 'migadu.com'),
  ...each(at('mail.privateemail.com', 'mail.privateemail.com'), 'privateemail.com'),
  ...each(at('imap.secureserver.net', 'smtpout.secureserver.net'), 'secureserver.net'),
  ...each(at('secure.emailsrvr.com', 'secure.emailsrvr.com'), 'emailsrvr.com'),
};

function each<Value>(value: Value, ...names: readonly string[]): Readonly<Record<string, Value>> {
  return Object.fromEntries(names.map((name) => [name, value]));
}

/** @param domain in lower case, without letters beyond ASCII */
export const serversOfDomain = (domain: string): KnownServers | SignInHost | undefined =>
  Object.hasOwn(BY_DOMAIN, domain) ? BY_DOMAIN[domain] : undefined;

/** @param host the name in an MX record */
export function serversBehind(host: string): KnownServers | SignInHost | undefined {
  const [, found] = Object.entries(BY_MAIL_HOST).find(([end]) => isInDomain(host, end)) ?? [];
  return found;
}

/** The provider to sign in with at a mail server of Google or Microsoft. */
export function signInHostOf(host: string): SignInHost | undefined {
  if (['gmail.com', 'googlemail.com', 'google.com'].some((domain) => isInDomain(host, domain))) return 'google';
  if (['office365.com', 'outlook.com', 'office.com'].some((domain) => isInDomain(host, domain))) return 'outlook';
  return undefined;
}

/** Whether a host is a domain, or below it. */
export const isInDomain = (host: string, domain: string): boolean => host === domain || host.endsWith(`.${domain}`);
