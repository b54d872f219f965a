import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { bundle } from 'headgate-testbed/bundle';
import type { WaitingOrder, WaitingReport } from './waiting-process.ts';

/** Runs processes that share windows, begin together and end by themselves. Returns their reports. */
export async function waitInProcesses(processes: number, order: WaitingOrder): Promise<WaitingReport[]> {
  const program = await bundle(join(import.meta.dirname, 'waiting-process.ts'));
  try {
    const children = Array.from({ length: processes }, () => start(program, order));
    await Promise.all(children.map(({ ready }) => ready));
    for (const { begin } of children) begin();
    return await Promise.all(children.map(({ report }) => report));
  } finally {
    rmSync(dirname(program), { recursive: true, force: true });
  }
}

function start(program: string, order: WaitingOrder) {
  const child = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  let becomeReady: () => void;
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve;
  });
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line);
    becomeReady();
  });
  const report = new Promise<WaitingReport>((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(lines[1] as string));
      else reject(new Error(`the process ended with ${code}`));
    });
  });
  return { ready, report, begin: () => child.stdin.end() };
}
