/** Lines of a table, with its columns aligned. Each ends with a line break. */
export function aligned(table: readonly (readonly string[])[]): string {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lineOf = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return table.map((row) => `${lineOf(row).trimEnd()}\n`).join('');
}
