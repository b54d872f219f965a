import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, start } from './process.mjs';

const BUILD_MS = 300_000;
const SERVE_MS = 60_000;

/**
 * Builds and starts an application of a framework with the package that is installed in `place`, and runs the cases
 * with its URL.
 * @param app `source` is copied to `folder`, and `files` (text by name) are added to it. `build` and `serve` are
 * arguments of Node
 * @returns the report of the cases
 */
export async function runApp({ source, folder, files = {}, env, build, serve, checkBuild = () => {}, cases }, place) {
  rmSync(folder, { recursive: true, force: true });
  cpSync(source, folder, { recursive: true });
  cpSync(join(place, 'node_modules/headgate'), join(folder, 'node_modules/headgate'), { recursive: true });
  const withPackage = { 'package.json': '{ "private": true, "type": "module" }', ...files };
  for (const [name, text] of Object.entries(withPackage)) writeFileSync(join(folder, name), text);

  const report = { passed: [], failed: [] };
  const check = async (name, body) => {
    try {
      await body();
      report.passed.push(name);
    } catch (error) {
      report.failed.push({ name, error });
    }
  };
  const options = { cwd: folder, env: { NODE_ENV: 'production', ...env } };
  await check('it is built', async () => {
    checkBuild(await run(process.execPath, build, { ...options, signal: AbortSignal.timeout(BUILD_MS) }));
  });
  if (report.passed.length === 0) return report;

  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(SERVE_MS)]);
  const server = start(process.execPath, serve, { ...options, signal });
  try {
    const [, port] = await server.printed(/http:\/\/\S+:(\d+)/);
    for (const [name, body] of Object.entries(cases)) await check(name, () => body(`http://127.0.0.1:${port}`));
  } catch (error) {
    report.failed.push({ name: 'it starts', error });
  } finally {
    stop.abort();
    await server.ended;
  }
  return report;
}

/**
 * A program that serves what an expression returns, a listener of `node:http`. The servers of most frameworks print the
 * port of their option, not the one that they got.
 */
export function serveScript(listener) {
  return `(async () => {
    const { createServer } = await import('node:http');
    const server = createServer(${listener}).listen(0, '127.0.0.1', () => {
      console.log('http://127.0.0.1:' + server.address().port);
    });
  })();`;
}
