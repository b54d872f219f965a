import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { type DomainPurpose, type DomainRecord, recordsOf } from '../domain/custom-domain.ts';
import { Periodic } from '../jobs/periodic.ts';
import type { HostResolver } from '../security/host-records.ts';
import type { Domain, Domains } from './domains.ts';

const DAY_MS = 86_400_000;
/** How often each process looks for domains whose day is over. */
const EVERY_MS = 3_600_000;
/** From the start to the first look. */
const FIRST_MS = 60_000;
/** Domains that are looked up at the same time. */
const AT_ONCE = 10;

/** A record, and whether the last check found it. */
export interface CheckedRecord extends DomainRecord {
  readonly status: 'unchecked' | 'found' | 'missing';
}

export interface DomainChecksParts {
  readonly domains: Domains;
  readonly resolver: HostResolver;
  /** The hosts to which custom domains lead. */
  readonly targets: Readonly<Record<DomainPurpose, string>>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/** Checks the DNS records of custom domains: when their application asks for it, and each day. */
export class DomainChecks {
  readonly #periodic = new Periodic({ firstMs: FIRST_MS, everyMs: EVERY_MS }, () => this.run());

  constructor(private readonly parts: DomainChecksParts) {}

  /** The records that the owner of a domain creates. */
  recordsOf({ host, purpose, token }: Domain): readonly DomainRecord[] {
    return recordsOf(host, this.parts.targets[purpose], token);
  }

  /** The records of a domain, with the result of the last check. */
  checkedRecordsOf(domain: Domain): readonly CheckedRecord[] {
    const statusOf = ({ type }: DomainRecord): CheckedRecord['status'] => {
      if (domain.checked_at === null) return 'unchecked';
      return domain.missing.includes(type) ? 'missing' : 'found';
    };
    return this.recordsOf(domain).map((record) => ({ ...record, status: statusOf(record) }));
  }

  /**
   * Checks a domain because its application asks for it. A check that fails changes no status.
   * @returns `taken`: another application verified the host
   */
  async verify(domain: Domain): Promise<Domain | 'taken' | undefined> {
    return this.#check(domain, false);
  }

  /**
   * Stores the result of a requested check. It is apart from the look-up, so that no transaction waits for a name
   * server.
   * @param missing the answer of `missingOf`
   * @returns like `verify`
   */
  async store(
    { application_id: applicationId, id }: Domain,
    missing: readonly DomainRecord['type'][],
    db?: Database,
    isDaily = false,
  ): Promise<Domain | 'taken' | undefined> {
    const { domains } = this.parts;
    if (missing.length > 0) return domains.setMissing(applicationId, id, missing, isDaily, db);
    return domains.setVerified(applicationId, id, db);
  }

  /** Which records of a domain are missing now. Nothing is stored. */
  async missingOf(domain: Domain): Promise<readonly DomainRecord['type'][]> {
    const found = await Promise.all(
      this.recordsOf(domain).map(async (record) => ((await this.#has(record)) ? [] : [record.type])),
    );
    return found.flat();
  }

  start(): void {
    this.#periodic.start();
  }

  close(): Promise<void> {
    return this.#periodic.close();
  }

  /** Checks every domain that was not checked for a day. It never fails: the next run tries again. */
  async run(): Promise<void> {
    const { domains, clock, log } = this.parts;
    try {
      for (let count = AT_ONCE; count === AT_ONCE && !this.#periodic.signal.aborted; ) {
        const taken = await domains.takeUnchecked(new Date(clock() - DAY_MS), AT_ONCE);
        count = taken.length;
        await Promise.all(taken.map((domain) => this.#checkAgain(domain)));
      }
    } catch (error) {
      log.error({ err: error }, 'custom domains were not checked');
    }
  }

  async #checkAgain(before: Domain): Promise<void> {
    const after = await this.#check(before, true);
    if (after === undefined || after === 'taken' || after.status === before.status) return;
    const { id, host, missing } = after;
    if (after.status === 'failing')
      this.parts.log.warn({ domain: id, host, missing }, 'a custom domain fails: new links use the default host');
    else this.parts.log.info({ domain: id, host }, 'a custom domain works again');
  }

  async #check(domain: Domain, isDaily: boolean): Promise<Domain | 'taken' | undefined> {
    return this.store(domain, await this.missingOf(domain), undefined, isDaily);
  }

  /** A name server that does not answer counts like a record that is missing. */
  async #has({ type, name, value }: DomainRecord): Promise<boolean> {
    const { resolver } = this.parts;
    if (type === 'TXT') {
      const texts = await resolver.resolveTxt(name).catch(() => []);
      return texts.some((parts) => parts.join('') === value);
    }
    const targets = await resolver.resolveCname(name).catch(() => []);
    return targets.some((target) => target.toLowerCase().replace(/\.$/, '') === value);
  }
}
