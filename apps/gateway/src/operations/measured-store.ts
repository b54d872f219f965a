import { decorateStore } from 'headgate/internal';
import type { LimitStore } from 'headgate/stores';
import { isPromise } from '../base/is-promise.ts';

type Observe = (operation: string, seconds: number) => void;

/** The same store, with the time of its calls observed. */
export function measuredStore(store: LimitStore, observe: Observe): LimitStore {
  const timed =
    (operation: string) =>
    <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
    (...args: Args): Result => {
      const from = performance.now();
      const done = (): void => observe(operation, (performance.now() - from) / 1_000);
      const result = call(...args);
      if (isPromise(result)) void result.then(done, done);
      else done();
      return result;
    };
  return decorateStore(store, {
    consume: timed('consume'),
    lease: timed('lease'),
    peek: timed('peek'),
    settle: timed('settle'),
    holdSlot: timed('hold_slot'),
    releaseSlot: timed('release_slot'),
    reset: timed('reset'),
    block: timed('block'),
    unblock: timed('unblock'),
    blocked: timed('blocked'),
    cooldown: timed('cooldown'),
  });
}
