import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from './process.mjs';

const installed = (path) => join(import.meta.dirname, 'node_modules', path);

const node = (version) => ({
  name: `node ${version}`,
  kind: 'node',
  run: (file, signal) => inProcess(installed(`node-${version}/bin/node`), [file], signal),
});

/**
 * The runtimes. `run` returns the report of a bundled suite, and rejects if there is no report. `kind` chooses the
 * server.
 */
export const RUNTIMES = [
  node(20),
  node(22),
  node(24),
  node(26),
  {
    name: 'bun',
    kind: 'bun',
    run: (file, signal) => inProcess(installed('@oven/bun-linux-x64/bin/bun'), [file], signal),
  },
  {
    name: 'deno',
    kind: 'deno',
    run: (file, signal) =>
      inProcess(installed('@deno/linux-x64-glibc/deno'), ['run', '--allow-all', '--no-remote', file], signal),
  },
  { name: 'workerd', kind: 'workerd', run: inWorker },
];

/** The marker of the report in the output of a suite. */
const REPORT = /^@@report (.*)$/m;

async function inProcess(command, args, signal) {
  const started = start(command, args, { cwd: import.meta.dirname, signal });
  const code = await started.ended;
  const [, report] = REPORT.exec(started.output()) ?? [];
  if (report === undefined) throw started.failed(code);
  return JSON.parse(report);
}

/**
 * `nodejs_compat` is off, so Node's modules are missing. `SELF` is the worker itself, so that each request comes from
 * outside.
 */
const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "suite", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "suite")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-10-01",
  bindings = [(name = "SELF", service = "suite")]
);
`;

async function inWorker(file, signal) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-worker-'));
  writeFileSync(join(folder, 'config.capnp'), CONFIG);
  copyFileSync(file, join(folder, 'worker.mjs'));
  const stop = new AbortController();
  const workerd = start(
    installed('@cloudflare/workerd-linux-64/bin/workerd'),
    ['serve', '--control-fd=1', join(folder, 'config.capnp')],
    { cwd: folder, signal: AbortSignal.any([signal, stop.signal]) },
  );
  try {
    const [, port] = await workerd.printed(/"event":"listen","socket":"http","port":(\d+)/);
    const response = await fetch(`http://127.0.0.1:${port}/`, { signal });
    if (!response.ok) throw new Error(`responded ${response.status}: ${await response.text()}${workerd.output()}`);
    return await response.json();
  } finally {
    stop.abort();
    await workerd.ended;
    rmSync(folder, { recursive: true, force: true });
  }
}
