import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A build that runs while tests of other projects do. */
export interface RunningBuild {
  /** Exists when the build is over: `built` or `failed`. */
  readonly result: string;
  stop(): Promise<void>;
}

/** Each project sets up for itself; they share the builds through the one process that does it. */
const shared = globalThis as { headgateBuilds?: Map<string, RunningBuild>; headgateLastBuild?: Promise<void> };

/**
 * Starts a build, once per run of the tests. Builds run one after the other, because a house needs the built library.
 * @param title name of the build
 * @param args of Node, from the root of the repository
 */
export function runBuild(title: string, ...args: string[]): RunningBuild {
  shared.headgateBuilds ??= new Map();
  const builds = shared.headgateBuilds;
  const build = builds.get(title) ?? startBuild(title, args, () => builds.delete(title));
  builds.set(title, build);
  return build;
}

function startBuild(title: string, args: readonly string[], onStop: () => void): RunningBuild {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-build-'));
  const result = join(folder, 'result');
  let build: ChildProcess | undefined;
  let isStopped = false;
  const run = (): Promise<void> =>
    new Promise((resolve) => {
      if (isStopped) return resolve();
      process.stdout.write(`Building ${title} …\n`);
      const startedAt = performance.now();
      build = spawn(process.execPath, args, { cwd: new URL('../../..', import.meta.url), stdio: 'inherit' });
      build.on('close', (code) => {
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
        process.stdout.write(code === 0 ? `${title} is built (${seconds} s).\n` : `The build of ${title} failed.\n`);
        writeFileSync(result, code === 0 ? 'built' : 'failed');
        resolve();
      });
    });
  const ended = (shared.headgateLastBuild ?? Promise.resolve()).then(run);
  shared.headgateLastBuild = ended;
  return {
    result,
    stop: async () => {
      onStop();
      isStopped = true;
      build?.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
