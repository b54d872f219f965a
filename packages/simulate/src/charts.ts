import { Html, html } from './html.ts';
import type { SimulationReport } from './report.ts';
import { shownNumber, shownSpan, shownTime } from './shown.ts';

const WIDTH = 960;
const HEIGHT = 220;
const LEFT = 64;
const TOP = 10;
const BOTTOM = 24;
const TICKS = 4;
const BAR = 100;

/** Requests over time as bars, and in each bar the rejected requests. */
export function timelineChart({ timeline, hasCandidate }: SimulationReport): Html {
  const { buckets, bucketMs } = timeline;
  const most = Math.max(1, ...buckets.map(({ requests }) => requests));
  const top = niceTop(most);
  const plot = { width: WIDTH - LEFT, height: HEIGHT - TOP - BOTTOM };
  const step = plot.width / Math.max(1, buckets.length);
  const y = (value: number): number => round(TOP + plot.height * (1 - value / top));
  const bars = (kind: string, read: (bucket: (typeof buckets)[number]) => number, part: number, shift: number): Html =>
    new Html(
      `<path class="${kind}" d="${buckets
        .map((bucket, i) => {
          const value = read(bucket);
          if (value === 0) return '';
          const [x, width] = [round(LEFT + (i + shift) * step), round(Math.max(0.6, step * part))];
          return `M${x} ${y(0)}V${y(value)}h${width}V${y(0)}z`;
        })
        .join('')}"/>`,
    );
  const grid = Array.from({ length: TICKS + 1 }, (_, i) => {
    const value = (top / TICKS) * i;
    return html`<path class="grid" d="M${LEFT} ${y(value)}H${WIDTH}"/><text class="faint" x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${shownNumber(value)}</text>`;
  });
  const [first, last] = [buckets[0], buckets.at(-1)];
  const wide = shownSpan(bucketMs);
  return html`<figure><div class="table" role="region" aria-label="Chart" tabindex="0"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="timeline-title timeline-text">
<title id="timeline-title">Requests and rejections over time</title>
<desc id="timeline-text">${buckets.length} bars of ${wide} each, the highest with ${shownNumber(most)} requests.</desc>
${grid}
${bars('all', ({ requests }) => requests, 0.92, 0.04)}
${bars('current', ({ rejectedByCurrent }) => rejectedByCurrent, hasCandidate ? 0.46 : 0.92, 0.04)}
${hasCandidate ? bars('candidate', ({ rejectedByCandidate }) => rejectedByCandidate, 0.46, 0.5) : undefined}
<text class="faint" x="${LEFT}" y="${HEIGHT - 6}">${shownTime(first?.at)}</text>
<text class="faint" x="${WIDTH}" y="${HEIGHT - 6}" text-anchor="end">${shownTime(last?.at)}</text>
</svg></div><figcaption><span class="key all"></span>all requests <span class="key current"></span>rejected by the current limits${
    hasCandidate ? html` <span class="key candidate"></span>rejected by the candidate` : undefined
  }, per ${wide}</figcaption></figure>`;
}

/** A bar from 0 to 1, with a mark at 80 %. The number is beside it. */
export function shareBar(share: number): Html {
  const width = round(Math.min(1, share) * BAR);
  const kind = share >= 1 ? 'full' : share > 0.8 ? 'much' : 'some';
  return html`<svg class="share" viewBox="0 0 ${BAR} 10" aria-hidden="true"><rect class="rest" width="${BAR}" height="10"/><rect class="${kind}" width="${width}" height="10"/><path class="mark" d="M80 0V10"/></svg>`;
}

/** The next of 4, 8, 20, 40, 80, …: its quarters are round. */
function niceTop(value: number): number {
  let unit = 1;
  for (;;) {
    const top = [4, 8, 20].map((factor) => factor * unit).find((each) => each >= value);
    if (top !== undefined) return top;
    unit *= 10;
  }
}

const round = (value: number): number => Number(value.toFixed(2));
