import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { countLines, noCounts, type Part, planParts } from './plan.ts';
import { KINDS, STORES } from './subjects.ts';
import { type Job, type PartReply, replayCommand, serveParts } from './worker.ts';

const HELP = `Runs random histories on every store, and compares each reply with the naive models of headgate/testing.

  npm run test:nightly -- [flags]

  --histories N   how many in all (1000000)
  --hours N       end after this time, and fail if histories are missing (8)
  --workers N     processes that run histories (2)
  --seed N        of the first part; the run prints it (random)
  --store NAME    only this store: ${STORES.join(', ')}
  --kind NAME     only this kind: ${KINDS.join(', ')}
  --path PATH     replays one history of --store, --kind and --seed, as a failure prints it
`;

const PROGRESS_MS = 30_000;

if (process.send === undefined) process.exitCode = await run(process.argv.slice(2));
else await serveParts();

async function run(args: readonly string[]): Promise<number> {
  const flags = readFlags(args);
  if (flags === undefined) return 2;
  if (flags === 'help') return 0;
  const { histories, hours, seed, stores, kinds, path } = flags;
  const parts: Job[] = planParts({ histories, seed, stores, kinds }).map((part) => ({ ...part, path }));
  const total = parts.reduce((sum, part) => sum + part.histories, 0);
  const [counts, startedAt] = [noCounts(), performance.now()];
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  log(`${path === undefined ? total.toLocaleString('en-US') : 'One'} random histories, seed ${seed}`);

  let [done, failed, isOver] = [0, false, false];
  const secondsUntilNow = (): number => (performance.now() - startedAt) / 1000;
  const end = (): void => {
    isOver = true;
  };
  process.once('SIGINT', end);
  const clock = setTimeout(end, hours * 3_600_000);
  const progress = setInterval(() => {
    const perSecond = done / secondsUntilNow();
    const left = perSecond === 0 ? 'unknown' : `${((total - done) / perSecond / 3600).toFixed(1)} h`;
    log(`${done.toLocaleString('en-US')} histories, ${perSecond.toFixed(0)} per second, left: ${left}`);
  }, PROGRESS_MS);

  const work = async (): Promise<void> => {
    const worker = fork(process.argv[1] as string, { execArgv: ['--enable-source-maps'] });
    const ended = once(worker, 'exit');
    try {
      for (let part = parts.shift(); part !== undefined && !isOver; part = parts.shift()) {
        worker.send(part);
        const failure = await Promise.race([replyOf(worker), ended.then(() => 'the worker ended')]);
        if (failure !== undefined) {
          failed = isOver = true;
          log(failureText(part, failure));
          return;
        }
        counts[part.store][part.kind] += part.histories;
        done += part.histories;
      }
    } finally {
      if (worker.connected) worker.disconnect();
      await ended;
    }
  };
  await Promise.all(Array.from({ length: Math.min(flags.workers, parts.length) }, work));
  clearTimeout(clock);
  clearInterval(progress);
  process.removeListener('SIGINT', end);

  if (path !== undefined) {
    if (!failed) log('The history passes.');
    return failed ? 1 : 0;
  }
  for (const line of countLines(counts)) log(line);
  const seconds = secondsUntilNow();
  log(`${done.toLocaleString('en-US')} of ${total.toLocaleString('en-US')} histories in ${seconds.toFixed(0)} s`);
  if (done < total && !failed) log('Not all histories have run: give it more --hours or --workers.');
  return done < total ? 1 : 0;
}

async function replyOf(worker: ReturnType<typeof fork>): Promise<string | undefined> {
  const [{ failure }] = (await once(worker, 'message')) as [PartReply];
  return failure;
}

function failureText(part: Part, report: string): string {
  return `\n${part.store}, ${part.kind}: a history fails.\n${report}\n\nReplay: ${replayCommand(part, report)}\n`;
}

interface Flags {
  readonly histories: number;
  readonly hours: number;
  readonly workers: number;
  readonly seed: number;
  readonly stores: typeof STORES | [(typeof STORES)[number]];
  readonly kinds: typeof KINDS | [(typeof KINDS)[number]];
  readonly path: string | undefined;
}

/** Undefined, and a message, if a flag is wrong. */
function readFlags(args: readonly string[]): Flags | 'help' | undefined {
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
    if (values.help === true) {
      process.stdout.write(HELP);
      return 'help';
    }
    const { store, kind, path } = values;
    if (path !== undefined && (store === undefined || kind === undefined || values.seed === undefined))
      throw new Error('--path needs --store, --kind and --seed, as the failure has printed them');
    return {
      histories: path === undefined ? numberOf('histories', values.histories, 1_000_000, Number.isSafeInteger) : 1,
      hours: numberOf('hours', values.hours, 8, Number.isFinite),
      workers: path === undefined ? numberOf('workers', values.workers, 2, Number.isSafeInteger) : 1,
      seed: seedOf(values.seed),
      stores: store === undefined ? STORES : [oneOf('store', store, STORES)],
      kinds: kind === undefined ? KINDS : [oneOf('kind', kind, KINDS)],
      path,
    };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`);
    return undefined;
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
