import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/**
 * Looks up names like `lookup`, but each name only once at a time: a call for a name that is being looked up gets that
 * result. The system looks up two names at a time for the whole process. While the name of Redis does not resolve, each
 * attempt to connect would start a lookup of many seconds, and the name of the upstream would wait behind them.
 */
export function shareLookups(look: LookupFunction): LookupFunction {
  const underWay = new Map<string, Parameters<LookupFunction>[2][]>();
  return (hostname, options, callback) => {
    const question = JSON.stringify([hostname, options]);
    const waiting = underWay.get(question);
    if (waiting !== undefined) {
      waiting.push(callback);
      return;
    }
    const callbacks = [callback];
    underWay.set(question, callbacks);
    look(hostname, options, (...result) => {
      underWay.delete(question);
      for (const each of callbacks) each(...result);
    });
  };
}

/** Shared by all clients of this process. */
export const sharedLookup: LookupFunction = shareLookups(lookup as LookupFunction);
