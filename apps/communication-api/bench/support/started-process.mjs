import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { cpuMicrosOf, peakRss, rssOf } from 'headgate-bench/process-figures';

const START_MS = 60_000;
/** The time until the answer is exact to so much. */
const ASK_MS = 5;

/**
 * Starts a process as a user does, and measures its start.
 * @param args of Node
 * @param banner what the process prints when it has started
 * @param url what it then answers with 200; undefined: it answers no requests
 * @returns milliseconds from the spawn until the banner and until the first answer, CPU time and memory then, and `stop()`
 */
export async function startedProcess(args, { env, banner, url }) {
  const began = performance.now();
  const since = () => performance.now() - began;
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const exit = once(child, 'exit');
  const output = { text: '' };
  const printed = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output.text += text;
        if (output.text.includes(banner)) resolve(since());
      });
  });
  const ended = exit.then(([code]) => {
    throw new Error(`the process ended with code ${code}: ${output.text}`);
  });
  const late = new AbortController();
  const tooLate = wait(START_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`the process has not started within ${START_MS} ms: ${output.text}`);
  });
  const answered = url === undefined ? undefined : answerOf(url, late.signal).then(since);
  const [bannerMs, answerMs] = await Promise.race([Promise.all([printed, answered]), ended, tooLate]).finally(() =>
    late.abort(),
  );
  // From here on it may end.
  ended.catch(() => {});
  tooLate.catch(() => {});
  return {
    bannerMs,
    answerMs,
    cpuMs: cpuMicrosOf([child.pid]) / 1_000,
    rss: rssOf(child.pid),
    peakRss: peakRss(child.pid),
    async stop() {
      child.kill('SIGTERM');
      await exit;
      process.off('exit', kill);
    },
  };
}

async function answerOf(url, signal) {
  while (!signal.aborted) {
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) return;
    await wait(ASK_MS);
  }
}
