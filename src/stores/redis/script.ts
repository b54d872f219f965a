import { createHash } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Commands } from './client.ts';
import { isUnknownScript } from './errors.ts';
import { inHex } from './upstash.ts';

/** A Lua script. */
export interface Script {
  run(commands: Commands, keys: readonly string[], args: readonly string[]): Promise<unknown>;
}

/**
 * Calls a script by its hash. The source is only sent if the server replies that it lacks the script. After any
 * other error the script may have been executed, so it must not be sent again.
 */
export function createScript(source: string): Script {
  const plain = hashed(source);
  let overHttp: HashedSource | undefined;
  const forHttp = (): HashedSource => {
    overHttp ??= hashed(inHex(source));
    return overHttp;
  };
  return {
    async run(commands, keys, args) {
      const { sha1, text } = commands.isOverHttp ? forHttp() : plain;
      try {
        return await commands.evalsha(sha1, keys, args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return commands.eval(text, keys, args);
      }
    },
  };
}

interface HashedSource {
  readonly text: string;
  readonly sha1: string;
}

const hashed = (text: string): HashedSource => ({ text, sha1: createHash('sha1').update(text).digest('hex') });

/** The time for a script; '' is the server's clock. */
export function scriptTime(clock: Clock | undefined): string {
  return clock === undefined ? '' : String(clock.now());
}
