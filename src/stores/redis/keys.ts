/** What may have to be escaped; half of a whole pair of surrogates need not be. */
const TO_ESCAPE = /[%}\ud800-\udfff]/;

/** Names the records of one prefix. Two different pairs never have one name, and an account's records always share a hash slot. */
export interface KeyNames {
  /** The record of an (account, route); without a route, the one that the account's routes share. */
  record(account: string, route?: string): string;
  /** A pattern for SCAN that matches records of an account, of a route, or of all; the names are to be checked with {@link KeyNames.parse}. */
  pattern(account?: string): string;
  /** The escaped account and route of a record's name; undefined for a name that is none of ours. */
  parse(key: string): { readonly account: string; readonly route: string | undefined } | undefined;
  escape(text: string): string;
}

/** `headgate:{acc_1}:r:POST /api/v1/emails`: the account stands in braces, since a cluster places a key by what is in them. */
export function createKeyNames(prefix: string): KeyNames {
  const start = `${prefix}:{`;
  return {
    record(account, route) {
      const tag = `${start}${escapeName(account)}}`;
      return route === undefined ? `${tag}:a` : `${tag}:r:${escapeName(route)}`;
    },
    pattern: (account) => `${glob(start)}${account === undefined ? '*' : glob(escapeName(account))}}:*`,
    parse(key) {
      const end = key.indexOf('}:', start.length);
      if (!key.startsWith(start) || end === -1) return undefined;
      const kind = key.slice(end + 2);
      if (kind !== 'a' && !kind.startsWith('r:')) return undefined;
      return { account: key.slice(start.length, end), route: kind === 'a' ? undefined : kind.slice(2) };
    },
    escape: escapeName,
  };
}

/**
 * A closing brace would end the hash tag early, an empty tag would be none, and a lone surrogate would reach the server as the same
 * replacement character as any other: all three are written so that no other text is written alike.
 */
function escapeName(text: string): string {
  if (text === '') return '%';
  if (!TO_ESCAPE.test(text)) return text;
  return text.replace(/[%}]|\p{Surrogate}/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The text as a pattern that matches it alone. */
export function glob(text: string): string {
  return text.replace(/[*?[\]\\^]/g, '\\$&');
}

/**
 * `headgate:claim:{app_1:order-17}`, the record of an idempotency key: all of the pair stands in the braces, so that claims spread over a
 * cluster. It ends with a brace and a limiter's names never do, so no two prefixes make them meet.
 */
export function claimKey(prefix: string, scope: string, key: string): string {
  // The first colon in the braces is the one between the two.
  return `${prefix}:claim:{${escapeName(scope).replaceAll(':', '%003a')}:${escapeName(key)}}`;
}
