import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/** A reply that takes longer means that something hangs. */
const TIME_BOX_MS = 120_000;

/**
 * Processes that measure one candidate each, so that no candidate changes the heap or the type feedback of another. One
 * process is asked at a time.
 * @param file URL of the module that each process runs
 * @param profile folder for a CPU profile of each process; undefined for none
 */
export function createFleet(file, profile, nodeFlags = []) {
  const execArgv = [...nodeFlags, ...(profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : [])];
  const members = new Map();
  async function answer({ child, exit }, name) {
    const box = new AbortController();
    const [message, ended] = await Promise.race([
      once(child, 'message', { signal: box.signal }),
      exit.then((code) => [undefined, code]),
      wait(TIME_BOX_MS, [undefined, `no reply within ${TIME_BOX_MS} ms`], { signal: box.signal }),
    ]).finally(() => box.abort());
    if (message === undefined) throw new Error(`${name} ended (${ended})`);
    if (message.error !== undefined) throw new Error(message.error);
    return message;
  }
  return {
    /** @returns the id of the started process */
    async start(name, settings) {
      // The standard output is for the report only.
      const stdio = ['ignore', 'ignore', 'inherit', 'ipc'];
      const child = fork(file, [JSON.stringify(settings)], { execArgv, stdio });
      const member = { child, exit: once(child, 'exit').then(([code, signal]) => String(signal ?? code)) };
      members.set(name, member);
      await answer(member, name);
      return child.pid;
    },
    ask(name, request) {
      const member = members.get(name);
      member.child.send(request);
      return answer(member, name);
    },
    async stop() {
      for (const { child } of members.values()) if (child.connected) child.disconnect();
      const late = new AbortController();
      const gone = Promise.all([...members.values()].map(({ exit }) => exit));
      await Promise.race([gone, wait(5_000, undefined, { signal: late.signal }).catch(() => {})]);
      late.abort();
      for (const { child } of members.values()) child.kill('SIGKILL');
    },
  };
}
