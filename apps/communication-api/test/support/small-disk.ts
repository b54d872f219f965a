import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cleanUpLater } from './clean-up.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** Real file systems of a few megabytes, which only processes in their namespace see. */
export interface SmallDisks {
  /** The program and the arguments that start a process in the namespace. */
  readonly through: readonly string[];
  /** The path of a disk, for processes in the namespace. */
  pathOf(disk: string): string;
  /** The same place, for this process. */
  outsidePathOf(disk: string): string;
  /** Uses up the space of a disk, until `free`. @param left megabytes that stay free */
  fill(disk: string, left?: number): void;
  free(disk: string): void;
  resize(disk: string, megabytes: number): void;
}

/**
 * Mounts a tmpfs per disk in a new mount namespace, for which no rights are needed if users may create namespaces. It
 * ends with the test file, or with this process.
 * @param sizes in megabytes, by the name of the disk
 */
export async function mountSmallDisks(sizes: Readonly<Record<string, number>>): Promise<SmallDisks> {
  const folder = temporaryFolder();
  const isRoot = process.getuid?.() === 0;
  const mounts = Object.entries(sizes).map(([disk, megabytes]) => {
    mkdirSync(join(folder, disk));
    return `mount -t tmpfs -o size=${megabytes}m tmpfs '${join(folder, disk)}'`;
  });
  const script = `set -e\n${mounts.join('\n')}\necho ready\nexec cat`;
  const holder = spawn('unshare', [...(isRoot ? [] : ['--map-root-user']), '--mount', 'sh', '-c', script]);
  const ended = once(holder, 'close');
  cleanUpLater(() => {
    holder.stdin.end();
    return ended;
  });
  const said = await Promise.race([once(holder.stdout, 'data'), ended.then(() => ['ended'])]);
  if (String(said[0]).trim() !== 'ready')
    throw new Error('This test mounts file systems: run it as root, or allow namespaces of users.');
  const entering = ['nsenter', ...(isRoot ? [] : ['--user', '--preserve-credentials']), '--mount', '--target'];
  const through = [...entering, String(holder.pid)];
  const pathOf = (disk: string) => join(folder, disk);
  const outsidePathOf = (disk: string) => join(`/proc/${holder.pid}/root`, folder, disk);
  const filler = (disk: string) => join(outsidePathOf(disk), 'filler');
  return {
    through,
    pathOf,
    outsidePathOf,
    fill(disk, left = 0) {
      const { bavail, bsize } = statfsSync(outsidePathOf(disk));
      writeFileSync(filler(disk), Buffer.alloc(bavail * bsize - left * 2 ** 20));
    },
    free: (disk) => rmSync(filler(disk)),
    resize(disk, megabytes) {
      const [program = '', ...rest] = [...through, 'mount', '-o', `remount,size=${megabytes}m`, pathOf(disk)];
      execFileSync(program, rest);
    },
  };
}
