/** Rows of cells as a Markdown table with aligned columns, which is readable in a terminal as well. */
export function table(head, rows) {
  const cells = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => `${'-'.repeat(width + 1)}${i === 0 ? '-' : ':'}`).join('|')}|`;
  return [line(head), rule, ...cells.slice(1).map(line)].join('\n');
}

export const whole = (value) => Math.round(value).toLocaleString('en');
export const spread = ({ median, least, most }) => `${digits(median)} (${digits(least)}–${digits(most)})`;

/** Two behind the point, and at least two that count. */
const digits = (value) => (value !== 0 && Math.abs(value) < 0.1 ? value.toPrecision(2) : value.toFixed(2));
