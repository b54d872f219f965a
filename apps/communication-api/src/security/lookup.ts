import { Resolver, lookup as systemLookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';

/** The addresses of a name, at least one. Rejects if the name resolves to no address. */
export type Lookup = (name: string) => Promise<readonly string[]>;

export interface LookupParts {
  /** The file of names that the operator chose. Default: the system's. */
  readonly hostsFile?: string;
  /** Asks the name servers. Default: the name servers of the system. */
  readonly resolver?: () => Pick<Resolver, 'resolve4' | 'resolve6'>;
  /** Resolves the rest: search domains, names of the local network. Default: the system's look-up. */
  readonly system?: Lookup;
}

/** For each name server, doubled at the second try. */
const TRY_MS = 2_000;
const TRIES = 2;
/** More look-ups of the system do not wait in line. */
const MAX_WAITING = 20;

/**
 * Looks names up as the system does, but without its thread pool if possible: two look-ups that get no answer would
 * stop all others of the process for 20 seconds, also look-ups of the database. An attacker needs two names for that.
 */
export function createLookup(parts: LookupParts = {}): Lookup {
  const {
    hostsFile = '/etc/hosts',
    // A new resolver each time, because the name servers may change.
    resolver = () => new Resolver({ timeout: TRY_MS, tries: TRIES }),
    system = async (name) => (await systemLookup(name, { all: true })).map(({ address }) => address),
  } = parts;
  const inTurn = oneAtATime(system);
  return async (name) => {
    const listed = await listedIn(hostsFile, name);
    if (listed.length > 0) return listed;
    const servers = resolver();
    const answers = await Promise.allSettled([servers.resolve4(name), servers.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    // The system would wait for the same name servers.
    const unanswered = answers.find((answer) => answer.status === 'rejected' && isUnanswered(answer.reason));
    if (unanswered?.status === 'rejected') throw unanswered.reason;
    return inTurn(name);
  };
}

const isUnanswered = ({ code }: NodeJS.ErrnoException): boolean => code === 'ETIMEOUT' || code === 'ESERVFAIL';

async function listedIn(hostsFile: string, name: string): Promise<readonly string[]> {
  // Some systems keep the file elsewhere. There the system's look-up knows its names.
  const lines = (await readFile(hostsFile, 'utf8').catch(() => '')).split('\n');
  return lines.flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    return names.includes(name) ? [address] : [];
  });
}

/** The process looks names up with two threads. This keeps one of them free. */
function oneAtATime(lookup: Lookup): Lookup {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return async (name) => {
    if (waiting >= MAX_WAITING) throw new Error('Too many look-ups are waiting.');
    waiting += 1;
    const found = last.then(() => lookup(name));
    last = found
      .catch(() => undefined)
      .then(() => {
        waiting -= 1;
      });
    return found;
  };
}
