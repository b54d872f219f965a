import type { Part } from './plan.ts';
import { openSubject, type StoreName, type Subject } from './subjects.ts';

/** What a worker replies after a part. */
export type PartReply = { readonly failure: string | undefined };

/** A part, or with a path one history of it. */
export type Job = Part & { readonly path?: string | undefined };

/** Runs the part. Returns fast-check's report if a history fails. */
export async function runPart(
  subject: Pick<Subject, 'run'>,
  { kind, histories, seed, path }: Job,
): Promise<string | undefined> {
  try {
    await subject.run[kind](histories, { seed, path });
    return undefined;
  } catch (error) {
    return reportOf(error);
  }
}

/** How to run one failed history again, which fast-check names by a seed and a path. */
export function replayCommand({ store, kind, seed: seedOfPart }: Part, report: string): string {
  const path = /path: "([^"]+)"/.exec(report)?.[1];
  const seed = /seed: (-?\d+)/.exec(report)?.[1] ?? seedOfPart;
  const at = path === undefined ? '' : ` --path ${path}`;
  return `npm run test:histories -- --store ${store} --kind ${kind} --seed ${seed}${at}`;
}

/** The report with its causes: the cause of a failed step says how the replies differ. */
function reportOf(error: unknown): string {
  const texts: string[] = [];
  for (let each = error; each instanceof Error; each = each.cause) texts.push(each.message);
  return texts.join('\n');
}

/** Runs the parts that the parent process sends, one after the other, until it disconnects. */
export async function serveParts(): Promise<void> {
  const subjects = new Map<StoreName, Promise<Subject>>();
  process.on('message', async (job: Job) => {
    try {
      const opened = subjects.get(job.store) ?? openSubject(job.store);
      subjects.set(job.store, opened);
      const subject = await opened;
      const failure = await runPart(subject, job);
      await subject.clear();
      process.send?.({ failure } satisfies PartReply);
    } catch (error) {
      process.send?.({ failure: reportOf(error) } satisfies PartReply);
    }
  });
  // Ctrl+C reaches the whole group of processes. The parent decides when a worker ends.
  process.on('SIGINT', () => {});
  await new Promise((resolve) => process.once('disconnect', resolve));
  for (const subject of subjects.values()) await subject.then(({ stop }) => stop()).catch(() => {});
  process.exit();
}
