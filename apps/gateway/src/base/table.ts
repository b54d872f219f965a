/** Lines of a table, with its columns aligned. Each ends with a line break. */
export function aligned(table: readonly (readonly string[])[]): string {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** Escapes a name, which may contain a terminal's control characters. */
export function printable(name: string): string {
  return /^[\x21-\x7e]+$/.test(name) ? name : JSON.stringify(name).replaceAll(/[\u007f-\uffff]/g, escapeUnit);
}

function escapeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
