/** Something wrong in the config or on the command line. */
export interface Fault {
  /** Place in the file such as `keys[0].sha256`, a flag such as `--port`, or empty for the file as a whole. */
  readonly path: string;
  /** What is wrong and what would be right, without a full stop. */
  readonly reason: string;
}

/** Why the process does not start; exit code 2. Every fault that could be found, not only the first. */
export class ConfigError extends Error {
  /** @param source name of the file, or what else is at fault */
  constructor(
    readonly source: string,
    readonly faults: readonly Fault[],
  ) {
    super(`${source} has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n${list(faults)}`);
    this.name = 'ConfigError';
  }
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** `['limits', 'routes', 'POST /x', 1]` to `limits.routes["POST /x"][1]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (IDENTIFIER.test(String(part))) text += text === '' ? String(part) : `.${String(part)}`;
    else text += `[${JSON.stringify(String(part))}]`;
  }
  return text;
}

function list(faults: readonly Fault[]): string {
  return faults.map(({ path, reason }) => (path === '' ? `  ${reason}` : `  ${path}: ${reason}`)).join('\n');
}
