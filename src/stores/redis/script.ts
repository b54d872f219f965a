import { createHash } from 'node:crypto';
import type { Commands } from './client.ts';

/** A Lua script that a server may or may not know. */
export interface Script {
  run(commands: Commands, keys: readonly string[], args: readonly string[]): Promise<unknown>;
}

/** Calls by hash, and by source only where the server says that it does not know it: any other error may stand for a script that has run (field note 4). */
export function createScript(source: string): Script {
  const sha1 = createHash('sha1').update(source).digest('hex');
  return {
    async run(commands, keys, args) {
      try {
        return await commands.evalsha(sha1, keys, args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return commands.eval(source, keys, args);
      }
    },
  };
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
