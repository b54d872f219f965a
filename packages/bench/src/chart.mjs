// A chart of horizontal bars as SVG, in panels that share one scale. It is light or dark like the reader's system.

const WIDTH = 1040;
const COLUMNS = 2;
const MARGIN = 16;
const GAP = 24;
const HEAD = 58;
const PANEL_HEAD = 22;
const ROW = 18;
const BAR = 12;
const AXIS = 22;
const LETTER = 6.6;
/** Our own labels are bold. */
const BOLD_LETTER = 7.6;
const VALUE = 48;

/** The colours are written out and are not CSS variables, because some SVG viewers do not support variables. */
const LIGHT = {
  paper: '#fff',
  ink: '#1f2328',
  faint: '#59636e',
  line: '#d1d9e0',
  ours: '#0969da',
  peer: '#9aa4af',
  floor: '#dfe3e8',
  edge: '#7d8790',
};
const DARK = {
  paper: '#0d1117',
  ink: '#e6edf3',
  faint: '#9198a1',
  line: '#30363d',
  ours: '#4493f8',
  peer: '#5b6570',
  floor: '#262c34',
  edge: '#8b949e',
};
const colours = ({ paper, ink, faint, line, ours, peer, floor, edge }) => `
.paper{fill:${paper}} text{fill:${ink}} .faint{fill:${faint}} .line{stroke:${line}} .spread{stroke:${ink}}
.bar{stroke:${edge}} .ours{fill:${ours}} .peer{fill:${peer}} .floor{fill:${floor}}
`;
const STYLE = `
text{font:12px system-ui,sans-serif} .title{font-size:15px;font-weight:600} .panel,.strong{font-weight:600} .faint{font-size:11px}
.spread{stroke-opacity:.6} .bar{stroke-width:.5}${colours(LIGHT)}@media (prefers-color-scheme:dark){${colours(DARK)}}`;

/**
 * @param chart `{ title, unit, scale: 'log' | 'linear', better: 'less' | 'more', panels: [{ title, bars }] }`; a bar is
 *   `{ label, value, least?, most?, kind: 'ours' | 'peer' | 'floor' }`; a thin line shows the range from least to most
 */
export function chartSvg({ title, unit, scale = 'linear', better, panels }) {
  const columns = Math.min(COLUMNS, panels.length);
  const panelWidth = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns;
  const labelWidth = Math.min(panelWidth * 0.6, Math.max(...panels.flatMap(({ bars }) => bars.map(labelLength))) + 8);
  const ticks = ticksOf(panels, scale);
  const position = positions(ticks, scale, panelWidth - labelWidth - VALUE);
  const heightOf = ({ bars }) => PANEL_HEAD + bars.length * ROW + AXIS;
  const rows = Array.from({ length: Math.ceil(panels.length / columns) }, (_, i) =>
    panels.slice(i * columns, (i + 1) * columns),
  );
  let y = HEAD;
  const drawn = rows.flatMap((row) => {
    const top = y;
    y += Math.max(...row.map(heightOf)) + GAP / 2;
    return row.map((panel, i) => {
      const inside = drawPanel(panel, { ticks, position, labelWidth });
      return `<g transform="translate(${round(MARGIN + i * (panelWidth + GAP))} ${top})">${inside}</g>`;
    });
  });
  const subtitle = [unit, `${better} is better`, ...(scale === 'log' ? ['logarithmic scale'] : [])].join(' · ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-labelledby="t d">
<title id="t">${escaped(title)}</title><desc id="d">${escaped(subtitle)}</desc>
<style>${STYLE}
</style>
<rect class="paper" width="100%" height="100%" rx="6"/>
<text class="title" x="${MARGIN}" y="26">${escaped(title)}</text><text class="faint" x="${MARGIN}" y="44">${escaped(subtitle)}</text>
${drawn.join('\n')}
</svg>
`;
}

const labelLength = ({ label, kind }) => label.length * (kind === 'ours' ? BOLD_LETTER : LETTER);

function drawPanel({ title, bars }, { ticks, position, labelWidth }) {
  const bottom = PANEL_HEAD + bars.length * ROW;
  // Bars begin at the axis, or at 0 if some figures are below 0.
  const zero = position(ticks.includes(0) ? 0 : ticks[0]);
  const grid = ticks.map((tick) => {
    const x = round(labelWidth + position(tick));
    return `<path class="line" d="M${x} ${PANEL_HEAD - 4}V${bottom}"/><text class="faint" x="${x}" y="${bottom + 14}" text-anchor="middle">${short(tick)}</text>`;
  });
  const drawn = bars.map(({ label, value, least, most, kind }, i) => {
    const y = PANEL_HEAD + i * ROW;
    const middle = y + BAR / 2;
    const strong = kind === 'ours' ? ' class="strong"' : '';
    const end = position(most ?? value);
    return [
      `<text${strong} x="${round(labelWidth - 6)}" y="${middle + 4}" text-anchor="end">${escaped(label)}</text>`,
      `<rect class="bar ${kind}" x="${round(labelWidth + Math.min(zero, position(value)))}" y="${y}" width="${round(Math.max(Math.abs(position(value) - zero), 1))}" height="${BAR}"/>`,
      ...(least === undefined
        ? []
        : [`<path class="spread" d="M${round(labelWidth + position(least))} ${middle}H${round(labelWidth + end)}"/>`]),
      `<text${strong} x="${round(labelWidth + Math.max(end, position(value)) + 5)}" y="${middle + 4}">${short(value)}</text>`,
    ].join('');
  });
  return `<text class="panel" x="0" y="10">${escaped(title)}</text>${grid.join('')}\n${drawn.join('\n')}`;
}

/**
 * Round numbers that enclose every figure: powers of ten, or about five equal steps from 0, and as many steps below 0
 * as the figures need.
 */
export function ticksOf(panels, scale) {
  const bars = panels.flatMap((panel) => panel.bars);
  const least = Math.min(...bars.flatMap((bar) => [bar.value, bar.least ?? bar.value]));
  const most = Math.max(...bars.flatMap((bar) => [bar.value, bar.most ?? bar.value]));
  if (scale === 'log') {
    const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
    return Array.from({ length: Math.max(to - from, 1) + 1 }, (_, i) => 10 ** (from + i));
  }
  const rough = most / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= rough);
  const from = Math.min(0, Math.floor(least / step));
  return Array.from({ length: Math.ceil(most / step) - from + 1 }, (_, i) => (from + i) * step);
}

function positions(ticks, scale, width) {
  const measure = scale === 'log' ? Math.log10 : (value) => value;
  const [from, to] = [measure(ticks[0]), measure(ticks.at(-1))];
  return (value) => ((measure(value) - from) / (to - from)) * width;
}

/** The number in three digits, with k, M or G. */
export function short(value) {
  for (const [size, letter] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (value >= size * 0.9995) return `${threeDigits(value / size)}${letter}`;
  }
  return threeDigits(value);
}

const threeDigits = (value) => String(Number(value.toPrecision(3)));
const round = (value) => Number(value.toFixed(1));
const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
