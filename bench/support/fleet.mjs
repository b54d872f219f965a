import { fork } from 'node:child_process';
import { once } from 'node:events';

/** Processes that each measure one candidate, so that none shapes another's heap or type feedback; asked one at a time. */
export function createFleet(file, execArgv = []) {
  const path = new URL(`../${file}`, import.meta.url);
  const members = new Map();
  async function answer({ child, exit }, name) {
    const [message, ended] = await Promise.race([once(child, 'message'), exit.then((code) => [undefined, code])]);
    if (message === undefined) throw new Error(`${name} ended (${ended})`);
    if (message.error !== undefined) throw new Error(message.error);
    return message;
  }
  return {
    async start(name, settings) {
      const child = fork(path, [JSON.stringify(settings)], { execArgv });
      const member = { child, exit: once(child, 'exit').then(([code, signal]) => String(signal ?? code)) };
      members.set(name, member);
      await answer(member, name);
    },
    ask(name, request) {
      const member = members.get(name);
      member.child.send(request);
      return answer(member, name);
    },
    async stop() {
      for (const { child } of members.values()) if (child.connected) child.disconnect();
      await Promise.all([...members.values()].map(({ exit }) => exit));
    },
  };
}
