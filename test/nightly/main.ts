import { fork } from 'node:child_process';
import { once } from 'node:events';
import { HELP, readFlags } from './flags.ts';
import { countLines, noCounts, type Part, planParts } from './plan.ts';
import { type Job, type PartReply, replayCommand, serveParts } from './worker.ts';

const PROGRESS_MS = 30_000;

if (process.send === undefined) process.exitCode = await run(process.argv.slice(2));
else await serveParts();

async function run(args: readonly string[]): Promise<number> {
  const flags = readFlags(args);
  if (typeof flags === 'string') {
    process.stderr.write(`${flags}\n\n${HELP}`);
    return 2;
  }
  if (flags.help) {
    process.stdout.write(HELP);
    return 0;
  }
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
