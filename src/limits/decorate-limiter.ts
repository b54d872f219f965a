import { decorate, type MethodTable, type Wrappers } from '../base/decorate.ts';
import { keepParts } from './limiter-parts.ts';
import type { Limiter } from './ports.ts';

const METHODS: MethodTable<Limiter> = {
  consume: true,
  consumeSync: true,
  peek: true,
  usage: true,
  inFlight: true,
  refund: true,
  settle: true,
  release: true,
  charge: true,
  reset: true,
  block: true,
  unblock: true,
  blocked: true,
  adjust: true,
  windowSet: true,
  close: true,
};

/** The same limiter, with other methods in place of some of its methods. */
export function decorateLimiter(limiter: Limiter, wrappers: Wrappers<Limiter>): Limiter {
  const { synchronous } = limiter;
  return keepParts(limiter, decorate(limiter, METHODS, { synchronous }, wrappers));
}
