import cluster from 'node:cluster';
import { runWorker } from '../workers/worker.ts';
import { runCli } from './cli.ts';

if (cluster.isWorker) runWorker();
else
  void runCli(process.argv.slice(2), {
    out: (text) => process.stdout.write(text),
    error: (text) => process.stderr.write(text),
  }).then((code) => {
    if (code !== undefined) process.exitCode = code;
  });
