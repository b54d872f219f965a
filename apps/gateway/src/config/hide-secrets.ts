import type { ConfigIssue } from './config-error.ts';

/** Characters of tokens, passwords and their encodings, in a row that is as long as the shortest good secret. */
const RUN = /[\w+/=~-]{16,}/g;
const SEGMENT = /[^/]{16,}/g;
/** Such as `JANE_TOKEN_SHA256`: words of at most 15 characters. */
const VARIABLE = /^[A-Z][A-Z\d]{0,14}(?:_[A-Z\d]{0,15})*$/;

/**
 * Hides what may be a secret in a text that shows values of a config, whatever their place: a token in the wrong place
 * must not be printed or logged. Almost every random secret has a digit in a long run of letters; names seldom do.
 */
export function hideSecrets(text: string): string {
  return text.replace(RUN, (run) => {
    if (!/\d/.test(run) || VARIABLE.test(run)) return run;
    // Base64 has slashes, too. A path begins with one, or has no upper-case letters.
    const isPath = run.includes('/') && (run.startsWith('/') || !/[A-Z]/.test(run));
    return isPath ? run.replace(SEGMENT, (segment) => (/\d/.test(segment) ? HIDDEN : segment)) : HIDDEN;
  });
}

const HIDDEN = '…';

/** Hides secrets in the reasons. A path consists of names, and the operator needs them to find the place. */
export function withoutSecrets(issues: readonly ConfigIssue[]): ConfigIssue[] {
  return issues.map(({ path, reason }) => ({ path, reason: hideSecrets(reason) }));
}
