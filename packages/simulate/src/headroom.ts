import type { Decision } from 'headgate';
import { formatWindow } from 'headgate';
import type { NamedWindow, WindowSet } from 'headgate/stores';
import { getOrCreate } from './get-or-create.ts';
import type { WindowHeadroom } from './report.ts';

/** A part of the window is counted in steps of half a percent. More than the whole counts as the last step. */
const STEPS = 200;
const MUCH = 0.8;
/** Most accounts whose names are stored per window. */
const MAX_ACCOUNTS = 1_000_000;

interface Cell {
  readonly route: string;
  readonly window: NamedWindow;
  readonly steps: Float64Array;
  readonly accounts: Set<string>;
  requests: number;
  max: number;
}

/** Counts how full windows are after each request that they accepted. */
export class Headroom {
  readonly #cells = new Map<string, Cell>();
  readonly #ofWindowSet = new WeakMap<WindowSet, Map<string, readonly Cell[]>>();
  #windowSet: WindowSet | undefined;
  #route = '';
  #last: readonly Cell[] = [];

  add(decision: Decision): void {
    const { windowSet, route, account } = decision;
    if (windowSet !== this.#windowSet || route !== this.#route) {
      this.#last = this.#cellsOf(windowSet, route);
      this.#windowSet = windowSet;
      this.#route = route;
    }
    const { trace } = decision;
    for (let i = 0; i < trace.length; i++) {
      const cell = this.#last[i] as Cell;
      const { max, remaining } = trace[i] as (typeof trace)[number];
      const used = max === 0 ? 1 : (max - remaining) / max;
      cell.requests++;
      const step = Math.ceil(used * STEPS);
      (cell.steps[step] as number) += 1;
      if (used > cell.max) cell.max = used;
      if (used > MUCH && cell.accounts.size < MAX_ACCOUNTS) cell.accounts.add(account);
    }
  }

  list(): WindowHeadroom[] {
    return [...this.#cells.values()]
      .map(({ route, window, steps, accounts, requests, max }) => ({
        limit: window.limit,
        route,
        window: formatWindow(window),
        requests,
        p50: percentile(steps, requests, 0.5, max),
        p95: percentile(steps, requests, 0.95, max),
        p99: percentile(steps, requests, 0.99, max),
        max,
        accountsOver80: accounts.size,
      }))
      .sort((a, b) => b.p99 - a.p99 || b.max - a.max || b.requests - a.requests);
  }

  #cellsOf(windowSet: WindowSet, route: string): readonly Cell[] {
    const byRoute = getOrCreate(this.#ofWindowSet, windowSet, () => new Map<string, readonly Cell[]>());
    return getOrCreate(byRoute, route, () =>
      windowSet.windows.map((window) =>
        getOrCreate(this.#cells, JSON.stringify([route, window.limit, formatWindow(window)]), () => ({
          route,
          window,
          steps: new Float64Array(STEPS + 1),
          accounts: new Set<string>(),
          requests: 0,
          max: 0,
        })),
      ),
    );
  }
}

/** The end of the step in which the request lies, but no more than the largest. */
function percentile(steps: Float64Array, requests: number, part: number, max: number): number {
  let left = Math.ceil(requests * part);
  for (let step = 0; step <= STEPS; step++) {
    left -= steps[step] as number;
    if (left <= 0) return Math.min(max, step / STEPS);
  }
  return max;
}
