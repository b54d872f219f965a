import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { minuteText, numberText, timeText } from './format.ts';
import { Wide } from './wide.tsx';

/** One colour of a chart. */
export interface Line {
  readonly name: string;
  /** The CSS class that sets the colour. */
  readonly color: string;
  /** One value per moment. */
  readonly values: readonly (number | null)[];
}

const HEIGHT = 200;

/**
 * Values over time, on a canvas, with a sentence and a table for those who do not see it.
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
  /** Seconds since 1970. */
  times: readonly number[];
  lines: readonly Line[];
  stacked?: boolean;
}) {
  const place = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLUListElement>(null);
  const chart = useRef<{ plot?: uPlot | undefined; data: uPlot.AlignedData }>({ data: [[]] });
  const data = [times, ...(stacked ? stack(lines) : lines.map(({ values }) => values))] as uPlot.AlignedData;
  chart.current.data = data;
  useEffect(() => chart.current.plot?.setData(data));
  const names = lines.map(({ name }) => name).join();
  // The chart is made anew only for other lines.
  useEffect(() => {
    let isGone = false;
    let sizes: ResizeObserver | undefined;
    const theme = matchMedia('(prefers-color-scheme: dark)');
    const make = async (): Promise<void> => {
      const { default: Plot } = await import('uplot');
      if (isGone || place.current === null || legend.current === null) return;
      chart.current.plot?.destroy();
      const width = place.current.clientWidth;
      const colors = [...legend.current.querySelectorAll('i')].map((each) => getComputedStyle(each).backgroundColor);
      const axis = { stroke: getComputedStyle(legend.current).color, grid: { show: false }, ticks: { show: false } };
      const plot = new Plot(
        {
          width,
          height: HEIGHT,
          legend: { show: false },
          cursor: { show: false },
          scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } },
          axes: [
            { ...axis, values: (_plot, ticks) => ticks.map(minuteText) },
            { ...axis, size: 56, values: (_plot, ticks) => ticks.map(numberText) },
          ],
          series: [
            {},
            ...colors.map((color) => ({
              stroke: color,
              width: stacked ? 0 : 2,
              points: { show: false },
              ...(Plot.paths.stepped && { paths: Plot.paths.stepped({ align: 1 }) }),
              ...(stacked && { fill: color }),
            })),
          ],
        },
        chart.current.data,
        place.current,
      );
      chart.current.plot = plot;
      sizes?.disconnect();
      sizes = new ResizeObserver(
        ([entry]) => entry && plot.setSize({ width: entry.contentRect.width, height: HEIGHT }),
      );
      sizes.observe(place.current);
    };
    const again = (): void => void make();
    theme.addEventListener('change', again);
    addEventListener('themechange', again);
    again();
    return () => {
      isGone = true;
      sizes?.disconnect();
      theme.removeEventListener('change', again);
      removeEventListener('themechange', again);
      chart.current.plot?.destroy();
      chart.current.plot = undefined;
    };
  }, [names, stacked]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <ul class="legend" ref={legend}>
        {lines.map(({ name, color }) => (
          <li key={name}>
            <i class={color} aria-hidden="true" /> {name}
          </li>
        ))}
      </ul>
      <div class="canvas" role="img" aria-label={sentence} ref={place} />
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

const ROWS = 60;

/** The places of the last moments, the newest first. */
function lastOf(times: readonly number[]): number[] {
  return times
    .map((_, at) => at)
    .slice(-ROWS)
    .reverse();
}

/**
 * Sums from the last line up: the first line is drawn first and is the tallest, so that the others are in front of it.
 */
function stack(lines: readonly Line[]): number[][] {
  const sums: number[][] = [];
  for (const { values } of [...lines].reverse()) {
    const below = sums[0];
    sums.unshift(values.map((value, i) => (value ?? 0) + (below?.[i] ?? 0)));
  }
  return sums;
}
