import { z } from 'zod';

/** Longest time that a timer of Node can wait for, in milliseconds. */
export const MAX_TIMER_MS = 2_147_483_647;

/** A time that Node's timers can wait for. */
export const milliseconds = (min: number) => z.int().min(min).max(MAX_TIMER_MS);
export const name = z.string().min(1);
/** Ids by the names of groups. */
export const groups = z.record(z.string(), name);

/** A check that fails if `read` throws, with the message of its error, without the place in front of it. */
export function readableBy<Value>(read: (value: Value) => unknown): z.core.CheckFn<Value> {
  return ({ value, issues }) => {
    try {
      read(value);
    } catch (error) {
      const message = (error as Error).message.replace(/^(window(\.name)?|headers): /, '');
      issues.push({ code: 'custom', message, input: value });
    }
  };
}
