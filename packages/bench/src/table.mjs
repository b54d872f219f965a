/** A Markdown table whose columns are aligned, so that it is readable in a terminal as well. */
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

/** Two decimals, or two significant digits if the value is below 0.1. */
const digits = (value) => (value !== 0 && Math.abs(value) < 0.1 ? value.toPrecision(2) : value.toFixed(2));
