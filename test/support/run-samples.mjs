// Runs several compiled samples in one process: node run-samples.mjs FOLDER NAME…
// Prints what each of them printed as JSON, when the process has nothing more to do.
import { AsyncLocalStorage } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';

const [folder, ...names] = argv.slice(2);
const running = new AsyncLocalStorage();
const printed = Object.fromEntries(names.map((name) => [name, '']));
let loaded = 0;

process.stdout.write = (text, encoding, callback) => {
  printed[running.getStore()] += text;
  for (const each of [encoding, callback]) if (typeof each === 'function') process.nextTick(each);
  return true;
};

process.on('exit', () => {
  writeSync(1, JSON.stringify(printed));
  // One of them ended the process.
  if (loaded < names.length) process.exitCode ||= 1;
});

// One after the other, as their top-level `await` lets them.
for (const name of names) {
  await running.run(name, () => import(pathToFileURL(join(folder, `${name}.mjs`)).href));
  loaded += 1;
}
