import { Counter, type Registry } from 'prom-client';
import { getOrCreate } from '../base/get-or-create.ts';

/** Counts that the registry does not know yet, by the value of the next label. */
interface Place {
  count: number;
  readonly next: Map<string, Place>;
}

/** Options of {@link FrequentCounter}. */
export interface FrequentCounterOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: Registry[];
}

/**
 * A counter that every request counts. A counter of the registry makes a text of the labels each time, which costs more
 * than a decision. So this one keeps its counts, and passes them on when the metrics are read.
 */
export class FrequentCounter {
  readonly #root = createPlace();

  constructor(options: FrequentCounterOptions) {
    const { labelNames } = options;
    const root = this.#root;
    new Counter({
      ...options,
      collect() {
        passOn(root, labelNames, {}, (labels, count) => this.inc(labels, count));
      },
    });
  }

  /** Adds 1. The values are in the order of the labels; the last three may be absent. */
  inc(first: string, second: string, third?: string, fourth?: string, fifth?: string): void {
    let place = placeOf(placeOf(this.#root, first), second);
    if (third !== undefined) place = placeOf(place, third);
    if (fourth !== undefined || fifth !== undefined) place = placeOf(place, fourth ?? ABSENT);
    if (fifth !== undefined) place = placeOf(place, fifth);
    place.count++;
  }
}

/** In place of a label that is absent in front of one that is given: to Prometheus an empty label is absent, too. */
const ABSENT = '';

type Labels = Readonly<Record<string, string>>;

function passOn(
  place: Place,
  [name, ...names]: readonly string[],
  labels: Labels,
  take: (labels: Labels, count: number) => void,
): void {
  if (place.count > 0) take(labels, place.count);
  place.count = 0;
  if (name === undefined) return;
  for (const [value, next] of place.next)
    passOn(next, names, value === ABSENT ? labels : { ...labels, [name]: value }, take);
}

function createPlace(): Place {
  return { count: 0, next: new Map() };
}

function placeOf({ next }: Place, value: string): Place {
  return getOrCreate(next, value, createPlace);
}
