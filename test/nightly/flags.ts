import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { KINDS, STORES } from './subjects.ts';

export const HELP = `Runs random histories on every store, and compares each reply with the naive models of headgate/testing.

  npm run test:histories -- [flags]

  --histories N   how many in all (1000000)
  --hours N       end after this time, and fail if histories are missing (8)
  --workers N     processes that run histories (2)
  --seed N        of the first part; the run prints it (random)
  --store NAME    only this store: ${STORES.join(', ')}
  --kind NAME     only this kind: ${KINDS.join(', ')}
  --path PATH     replays one history of --store, --kind and --seed, as a failure prints it
`;

/** What the command line asks for. */
export interface Flags {
  readonly help: boolean;
  readonly histories: number;
  readonly hours: number;
  readonly workers: number;
  readonly seed: number;
  readonly stores: typeof STORES | [(typeof STORES)[number]];
  readonly kinds: typeof KINDS | [(typeof KINDS)[number]];
  readonly path: string | undefined;
}

/** The flags, or what is wrong with them. */
export function readFlags(args: readonly string[]): Flags | string {
  try {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({
      args: [...args],
      options: {
        histories: text,
        hours: text,
        workers: text,
        seed: text,
        store: text,
        kind: text,
        path: text,
        help: { type: 'boolean' },
      },
    });
    const { store, kind, path } = values;
    if (path !== undefined && (store === undefined || kind === undefined || values.seed === undefined))
      throw new Error('--path needs --store, --kind and --seed, as the failure has printed them');
    return {
      help: values.help === true,
      histories: path === undefined ? numberOf('histories', values.histories, 1_000_000, Number.isSafeInteger) : 1,
      hours: numberOf('hours', values.hours, 8, Number.isFinite),
      workers: path === undefined ? numberOf('workers', values.workers, 2, Number.isSafeInteger) : 1,
      seed: seedOf(values.seed),
      stores: store === undefined ? STORES : [oneOf('store', store, STORES)],
      kinds: kind === undefined ? KINDS : [oneOf('kind', kind, KINDS)],
      path,
    };
  } catch (error) {
    return (error as Error).message;
  }
}

function numberOf(name: string, text: string | undefined, ordinarily: number, isRight: (n: number) => boolean): number {
  const number = text === undefined ? ordinarily : Number(text);
  if (!isRight(number) || number <= 0) throw new Error(`--${name}: expected a positive number, not "${text}"`);
  return number;
}

function seedOf(text: string | undefined): number {
  const seed = text === undefined ? randomInt(2 ** 31) : Number(text);
  if (seed !== (seed | 0)) throw new Error(`--seed: expected an integer of 32 bits, not "${text}"`);
  return seed;
}

function oneOf<T extends string>(name: string, text: string, known: readonly T[]): T {
  const found = known.find((each) => each === text);
  if (found === undefined) throw new Error(`--${name}: unknown ${name} "${text}" (expected ${known.join(', ')})`);
  return found;
}
