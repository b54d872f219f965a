import { runCli } from './cli.ts';

void runCli(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  error: (text) => process.stderr.write(text),
}).then((code) => {
  if (code !== undefined) process.exitCode = code;
});
