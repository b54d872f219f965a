import { minuteText, numberText, timeText } from './format.ts';
import { Wide } from './wide.tsx';

/** One colour of a chart. */
export interface Line {
  readonly name: string;
  /** The class that has the colour. */
  readonly color: string;
  /** One value per moment. */
  readonly values: readonly (number | null)[];
}

/** Height of the drawing, in units of its own: the browser stretches it. */
const HEIGHT = 100;

/**
 * Values over time, with a sentence and a table for those who do not see the drawing.
 * @param stacked whether each line begins on top of the one before it
 */
export function TimeChart({
  title,
  sentence,
  times,
  lines,
  stacked = false,
}: {
  title: string;
  sentence: string;
  /** Seconds since 1970, at least one. */
  times: readonly number[];
  lines: readonly Line[];
  stacked?: boolean;
}) {
  const tops = stacked ? stack(lines) : lines.map(({ values }) => values);
  const [first, last] = [times[0] as number, times.at(-1) as number];
  const ends = times.map((_, at) => (times[at + 1] ?? last + 1) - first);
  const most = roundUp(Math.max(1, ...tops.flat().map(Number)));
  const heights = tops.map((values) => values.map((value) => (value === null ? null : HEIGHT * (1 - value / most))));
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <ul class="legend">
        {lines.map(({ name, color }) => (
          <li key={name}>
            <i class={color} aria-hidden="true" /> {name}
          </li>
        ))}
      </ul>
      <div class="drawing">
        <Labels class="heights" texts={[most, most / 2, 0].map(numberText)} />
        <svg role="img" aria-label={sentence} viewBox={`0 0 ${ends.at(-1)} ${HEIGHT}`} preserveAspectRatio="none">
          {lines.map(({ name, color }, at) => {
            const steps = pathOf(ends, heights[at] as readonly (number | null)[]);
            // Without gaps: what is stacked is 0 where it has no value.
            const d = stacked ? `${steps.replace('M', `M0 ${HEIGHT}L`)}V${HEIGHT}Z` : steps;
            return <path key={name} class={`${color} ${stacked ? 'area' : ''}`} d={d} />;
          })}
        </svg>
        <Labels class="moments" texts={[first, (first + last) / 2, last].map(minuteText)} />
      </div>
      <details>
        <summary>As a table</summary>
        <Wide label={title}>
          <table>
            <thead>
              <tr>
                <th>Time</th>
                {lines.map(({ name }) => (
                  <th key={name} class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {lastOf(times).map((at) => (
                <tr key={at}>
                  <td>{timeText((times[at] as number) * 1_000)}</td>
                  {lines.map(({ name, values }) => (
                    <td key={name} class="number">
                      {numberText(values[at] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      </details>
    </figure>
  );
}

function Labels({ class: name, texts }: { class: string; texts: readonly string[] }) {
  return (
    <div class={`${name} soft`} aria-hidden="true">
      {texts.map((text, at) => (
        <span key={at}>{text}</span>
      ))}
    </div>
  );
}

/** Steps: a value holds until the next moment. null is a gap. */
function pathOf(ends: readonly number[], heights: readonly (number | null)[]): string {
  let isGap = true;
  return heights
    .map((height, at) => {
      const wasGap = isGap;
      isGap = height === null;
      if (height === null) return '';
      const y = height.toFixed(2);
      return `${wasGap ? `M${ends[at - 1] ?? 0} ${y}` : `V${y}`}H${ends[at]}`;
    })
    .join('');
}

/** The next of 1, 2, 5, 10, 20 … */
function roundUp(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5].find((each) => each * power >= most) ?? 10) * power;
}

const ROWS = 60;

/** The places of the last moments, the newest first. */
function lastOf(times: readonly number[]): number[] {
  return times
    .map((_, at) => at)
    .slice(-ROWS)
    .reverse();
}

/** Sums from the last line up: the first one is drawn first and is the tallest, so that the others stand before it. */
function stack(lines: readonly Line[]): number[][] {
  const sums: number[][] = [];
  for (const { values } of [...lines].reverse()) {
    const below = sums[0];
    sums.unshift(values.map((value, i) => (value ?? 0) + (below?.[i] ?? 0)));
  }
  return sums;
}
