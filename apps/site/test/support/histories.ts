import fc from 'fast-check';
import { SPANS } from '../../playground/moments.ts';
import type { State } from '../../playground/presets.ts';

const windows = fc
  .uniqueArray(fc.tuple(fc.nat({ max: 9 }), fc.constantFrom('500ms', '1s', '7s', '20s', '1m')), {
    minLength: 1,
    maxLength: 3,
    selector: ([, duration]) => duration,
  })
  .map((all) => all.map(([max, duration]) => `${max}/${duration}`).join(', '));

const texts = fc.record({ allMethods: windows, route: fc.oneof(fc.constant(''), windows) });

/** Random limits, with requests that come close together and far apart. */
export const histories: fc.Arbitrary<State> = fc.record({
  current: texts,
  candidate: fc.option(texts, { nil: undefined }),
  adjustment: fc.option(fc.record({ atMs: fc.nat({ max: 60_000 }), limits: texts }), { nil: undefined }),
  moments: fc
    .array(fc.oneof(fc.constant(0), fc.nat({ max: 900 }), fc.nat({ max: 30_000 })), { maxLength: 40 })
    .map((steps) =>
      steps.map(
        (
          (sum) => (step: number) =>
            (sum += step)
        )(0),
      ),
    ),
  spanMs: fc.constantFrom(...SPANS.map(({ ms }) => ms)),
});
