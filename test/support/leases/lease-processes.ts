import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { bundle } from 'headgate-testbed/bundle';
import { afterAll, beforeAll } from 'vitest';
import type { LeaseLine, LeaseOrder } from './lease-worker.ts';

/** What processes with leases admitted together, by duration and start of the window instance. */
export class Admissions {
  readonly #byInstance = new Map<string, number>();
  leased = 0;

  add({ charged, leased }: Extract<LeaseLine, { leased: boolean }>): void {
    if (leased) this.leased++;
    for (const instance of charged) {
      const name = instance.join(' from ');
      this.#byInstance.set(name, this.of(instance) + 1);
    }
  }

  of([durationMs, startedAt]: readonly [number, number]): number {
    return this.#byInstance.get(`${durationMs} from ${startedAt}`) ?? 0;
  }

  /** The most that an instance of this duration admitted. */
  most(durationMs: number): number {
    const counts = [...this.#byInstance].filter(([name]) => name.startsWith(`${durationMs} from `));
    return Math.max(0, ...counts.map(([, count]) => count));
  }

  /** When the instances of this duration began. */
  starts(durationMs: number): readonly number[] {
    const names = [...this.#byInstance.keys()].map((name) => name.split(' from ').map(Number));
    return names.flatMap(([duration, startedAt]) => (duration === durationMs ? [startedAt as number] : []));
  }

  get instances(): number {
    return this.#byInstance.size;
  }
}

/** One process that decides with leases. */
export interface LeaseProcess {
  /** How many of its requests were admitted so far. */
  readonly admitted: number;
  readonly child: ChildProcess;
  /** Stops it (SIGSTOP), and lets it go on (SIGCONT). */
  stop(): void;
  goOn(): void;
  /** Kills it (SIGKILL). */
  kill(): Promise<void>;
  /** Ends its work, and returns its last figures. */
  end(): Promise<Extract<LeaseLine, { lost: number }>>;
}

/** Starts processes that decide with leases. Call it at the top of a test file. */
export function leaseProcesses(): (order: LeaseOrder, admissions: Admissions) => LeaseProcess {
  let worker: string;
  const children: ChildProcess[] = [];
  beforeAll(async () => {
    worker = await bundle(join(import.meta.dirname, 'lease-worker.ts'));
  });
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(dirname(worker), { recursive: true, force: true });
  });
  return (order, admissions) => {
    const child = spawn(process.execPath, [worker, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(child);
    let admitted = 0;
    let figures: Extract<LeaseLine, { lost: number }> | undefined;
    createInterface(child.stdout).on('line', (text) => {
      const line: LeaseLine = JSON.parse(text);
      if ('lost' in line) {
        figures = line;
        return;
      }
      admitted++;
      admissions.add(line);
    });
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    return {
      get admitted() {
        return admitted;
      },
      child,
      stop: () => void child.kill('SIGSTOP'),
      goOn: () => void child.kill('SIGCONT'),
      async kill() {
        child.kill('SIGKILL');
        await closed;
      },
      async end() {
        child.stdin.end();
        await closed;
        if (figures === undefined) throw new Error('the process ended without its figures');
        return figures;
      },
    };
  };
}
