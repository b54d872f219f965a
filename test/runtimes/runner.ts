/**
 * Replaces vitest in other runtimes: collects the cases of a suite, runs them one by one, and reports their results.
 */

interface Case {
  readonly name: string;
  readonly run: () => unknown;
  readonly timeoutMs: number;
}

/** The results of the cases of a suite. */
export interface Report {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly error: string }[];
  readonly leftOut: readonly { readonly name: string; readonly reason: string }[];
}

const cases: Case[] = [];
const groups: string[] = [];
let contacted: 'none' | 'server' | 'client' = 'none';

export function describe(name: string, define: () => void): void {
  groups.push(name);
  define();
  groups.pop();
}

export function it(name: string, run: () => unknown, timeoutMs = 10_000): void {
  cases.push({ name: [...groups, name].join(': '), run, timeoutMs });
}

/**
 * A server without a socket reports that it was started ('server'), and then that it was sent a request ('client'). A
 * case that starts a server and sends no request needs a socket.
 */
export function reportContact(who: 'server' | 'client'): void {
  contacted = who;
}

/**
 * @param gaps cases that fail in this runtime, by the end of their name, each with the reason; a gap that passes is an
 * error
 */
export async function runCases(gaps: Readonly<Record<string, string>> = {}): Promise<Report> {
  const report = {
    passed: [] as string[],
    failed: [] as Report['failed'][number][],
    leftOut: [] as Report['leftOut'][number][],
  };
  for (const name of Object.keys(gaps)) {
    if (!cases.some((one) => one.name.endsWith(name))) report.failed.push({ name, error: 'gaps has an unknown case' });
  }
  if (cases.length === 0) report.failed.push({ name: 'the suite', error: 'has no cases' });
  for (const one of cases) {
    contacted = 'none';
    const error = await withTimeout(one).then(
      () => undefined,
      (thrown: unknown) => String((thrown as Error)?.stack ?? thrown),
    );
    const { name } = one;
    const gap = Object.entries(gaps).find(([end]) => name.endsWith(end))?.[1];
    const declared = gap ?? / \(gap: (.*)\)$/.exec(name)?.[1];
    if (gap !== undefined && error === undefined) report.failed.push({ name, error: 'passes: remove it from gaps' });
    else if (gap === undefined && error !== undefined) report.failed.push({ name, error });
    else if (declared !== undefined) report.leftOut.push({ name, reason: declared });
    else if (contacted === ('server' as typeof contacted)) report.leftOut.push({ name, reason: 'they need a socket' });
    else report.passed.push(name);
  }
  return report;
}

async function withTimeout({ run, timeoutMs }: Case): Promise<void> {
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
