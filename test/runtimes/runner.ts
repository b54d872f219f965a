/** Stands in for vitest where a suite runs in another runtime: collects cases, runs them one by one, and says how each went. */

interface Case {
  readonly name: string;
  readonly run: () => unknown;
  readonly timeoutMs: number;
}

/** How the cases of a suite went. */
export interface Report {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly error: string }[];
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[];
}

const cases: Case[] = [];
const groups: string[] = [];
let asked: 'nobody' | 'server' | 'client' = 'nobody';

export function describe(name: string, define: () => void): void {
  groups.push(name);
  define();
  groups.pop();
}

export function it(name: string, run: () => unknown, timeoutMs = 10_000): void {
  cases.push({ name: [...groups, name].join(': '), run, timeoutMs });
}

/** A server without a socket says whether it was started and then asked: a case that started it and asked nothing needs a socket. */
export function askedOf(who: 'server' | 'client'): void {
  asked = who;
}

/** @param gaps cases that do not hold in this runtime, by the end of their name, each with the reason; one that holds after all is a fault */
export async function runCases(gaps: Readonly<Record<string, string>> = {}): Promise<Report> {
  const report = {
    passed: [] as string[],
    failed: [] as Report['failed'][number][],
    leftOut: [] as Report['leftOut'][number][],
  };
  for (const name of Object.keys(gaps)) {
    if (!cases.some((one) => one.name.endsWith(name))) report.failed.push({ name, error: 'a gap that is no case' });
  }
  if (cases.length === 0) report.failed.push({ name: 'the suite', error: 'has no cases' });
  for (const one of cases) {
    asked = 'nobody';
    const error = await inTime(one).then(
      () => undefined,
      (thrown: unknown) => String((thrown as Error)?.stack ?? thrown),
    );
    const { name } = one;
    const gap = Object.entries(gaps).find(([end]) => name.endsWith(end))?.[1];
    const declared = gap ?? / \(gap: (.*)\)$/.exec(name)?.[1];
    if (gap !== undefined && error === undefined)
      report.failed.push({ name, error: 'holds: the gap is to be struck out' });
    else if (gap === undefined && error !== undefined) report.failed.push({ name, error });
    else if (declared !== undefined) report.leftOut.push({ name, reason: declared });
    else if (asked === ('server' as typeof asked)) report.leftOut.push({ name, reason: 'they need a socket' });
    else report.passed.push(name);
  }
  return report;
}

async function inTime({ run, timeoutMs }: Case): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
  }
}
