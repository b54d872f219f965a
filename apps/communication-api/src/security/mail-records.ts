import { Resolver } from 'node:dns/promises';

const TRY_MS = 2_000;
const TRIES = 2;

/** The place of a service, from DNS. */
export interface ServiceHost {
  readonly host: string;
  readonly port: number;
}

type RecordResolver = Pick<Resolver, 'resolveMx' | 'resolveSrv'>;

/**
 * The DNS records that lead to mail servers. The system's name servers are asked, so no proxy is used. The
 * policy of the egress judges the hosts when a connection is made to them.
 */
export class MailRecords {
  /** @param resolver default: the system's name servers */
  constructor(private readonly resolver: RecordResolver = new Resolver({ timeout: TRY_MS, tries: TRIES })) {}

  /** The hosts of a service such as `_imaps._tcp.example.org`, the preferred one first. None if DNS does not answer. */
  async services(name: string): Promise<readonly ServiceHost[]> {
    const records = await this.resolver.resolveSrv(name).catch(() => []);
    return (
      records
        // A dot says that the domain does not offer the service (RFC 2782).
        .filter((record) => record.name !== '' && record.name !== '.')
        .sort((a, b) => a.priority - b.priority || b.weight - a.weight)
        .map((record) => ({ host: record.name.toLowerCase(), port: record.port }))
    );
  }

  /** The hosts that take emails for a domain, the preferred one first. None if DNS does not answer. */
  async mailHosts(domain: string): Promise<readonly string[]> {
    const records = await this.resolver.resolveMx(domain).catch(() => []);
    return records.sort((a, b) => a.priority - b.priority).map(({ exchange }) => exchange.toLowerCase());
  }
}
