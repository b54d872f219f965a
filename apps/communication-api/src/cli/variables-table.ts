import { describeVariables } from '../config.ts';

/**
 * Every variable with its value: the given value, else the default. Values that can contain a secret are masked, or
 * shown as the path of their file.
 */
export function variablesTable(environment: Readonly<Record<string, string | undefined>>): string {
  const rows = describeVariables().map(({ name, defaultValue, description, isSecret }) => {
    const [given, file] = [
      environment[name] || undefined,
      isSecret ? environment[`${name}_FILE`] || undefined : undefined,
    ];
    const value = file ?? (given === undefined ? (defaultValue ?? '-') : isSecret ? '****' : given);
    const source = file !== undefined ? ' (file)' : given !== undefined ? ' (set)' : '';
    return [name, value + source, description] as const;
  });
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column as 0 | 1].length)));
  return rows
    .map(([name, value, text]) => `${name.padEnd(widths[0] ?? 0)}  ${value.padEnd(widths[1] ?? 0)}  ${text}\n`)
    .join('');
}
