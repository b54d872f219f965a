/** Something wrong in the config or on the command line. */
export interface ConfigIssue {
  /** Place in the file such as `keys[0].sha256`, a flag such as `--port`, or empty for the file as a whole. */
  readonly path: string;
  /** The mistake and its remedy, without a full stop. */
  readonly reason: string;
}

/** Why the process does not start; exit code 2. It lists every issue that was found, not only the first. */
export class ConfigError extends Error {
  /** @param source name of the file, or of what else the issues are in */
  constructor(
    readonly source: string,
    readonly issues: readonly ConfigIssue[],
  ) {
    super(`${source} has ${issues.length === 1 ? 'an error' : `${issues.length} errors`}:\n${list(issues)}`);
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

function list(issues: readonly ConfigIssue[]): string {
  return issues.map(({ path, reason }) => (path === '' ? `  ${reason}` : `  ${path}: ${reason}`)).join('\n');
}

/** The issue of a place, if there is a reason for one. */
export function issueIf(path: string, reason: string | undefined): ConfigIssue[] {
  return reason === undefined ? [] : [{ path, reason }];
}
