import cluster from 'node:cluster';
import { setFlagsFromString } from 'node:v8';
import { runWorker } from '../workers/worker.ts';
import { runCli } from './cli.ts';

// Requests die young. V8 sometimes concludes from the first ones, which arrive before its code is warm, that some of
// their objects live long, and allocates these in the old generation from then on. Everything that they refer to stays
// in memory until the next full collection: collections then took a sixth of the CPU.
setFlagsFromString('--no-allocation-site-pretenuring');

if (cluster.isWorker) runWorker();
else
  void runCli(process.argv.slice(2), {
    out: (text) => process.stdout.write(text),
    error: (text) => process.stderr.write(text),
    isInteractive: process.stderr.isTTY === true,
  }).then((code) => {
    if (code !== undefined) process.exitCode = code;
  });
