import type { MaybePromise } from '../base/maybe-promise.ts';
import type { LimitStore } from '../core/ports.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Limiter } from './ports.ts';
import type { Slots } from './slots.ts';
import type { LayerField, Subject, WindowSetSource } from './window-set-source.ts';

/** What a limiter is made of. */
interface LimiterParts {
  readonly store: LimitStore;
  readonly windowSets: WindowSetSource;
  /** Like `windowSet` of the limiter, and waits for a promise of the function `limits`. */
  readonly resolve: (subject: Subject) => MaybePromise<WindowSet>;
  /** Undefined while no request in flight was counted. */
  readonly slots: () => Slots | undefined;
}

/** Under this name a limiter keeps its parts, also if two copies of the package are loaded (ESM and CJS). */
const PARTS = /* @__PURE__ */ Symbol.for('headgate.limiter.parts');

/** The parts of a limiter; undefined if `createLimiter` did not make it. */
export function partsOf(limiter: Limiter): LimiterParts | undefined {
  return (limiter as { readonly [PARTS]?: LimiterParts })[PARTS];
}

/** Gives a decorated limiter the parts of the limiter within. */
export function keepParts(inner: Limiter, decorated: Limiter): Limiter {
  return withParts(decorated, partsOf(inner));
}

/** A computed name in the class would keep bundlers from leaving the class out. */
export function withParts(limiter: Limiter, parts: LimiterParts | undefined): Limiter {
  return Object.defineProperty(limiter, PARTS, { value: parts });
}

/** Like `windowSet` of the limiter, and waits for a promise of the function `limits`. */
export function windowSetOf(limiter: Limiter, subject: Subject): MaybePromise<WindowSet> {
  return partsOf(limiter)?.resolve(subject) ?? limiter.windowSet(subject);
}

/** Which of plan and provider the limits of a limiter name. */
export function layerFields(limiter: Limiter): readonly LayerField[] {
  return partsOf(limiter)?.windowSets.layerFields ?? [];
}

/** The names of the groups that the limits of a limiter have. */
export function groupsOf(limiter: Limiter): readonly string[] {
  return partsOf(limiter)?.windowSets.groups ?? [];
}

/**
 * Whether no request of a limiter can name a group, or a lane. Limits that do not list their lanes, such as a function, say
 * only with a request what they have.
 */
export function hasNone(limiter: Limiter, name: 'groups' | 'lanes'): boolean {
  const { lanes, groups = [] } = partsOf(limiter)?.windowSets ?? {};
  return lanes !== undefined && (name === 'lanes' ? lanes : groups).length === 0;
}

/** Whether each request of a limiter must name its route. */
export function needsRoute(limiter: Limiter): boolean {
  return partsOf(limiter)?.windowSets.needsRoute ?? true;
}
