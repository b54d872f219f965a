import type { ClaimId } from '../../core/ports.ts';

/** Characters that can need escaping. Surrogates that form a pair do not. */
const TO_ESCAPE = /[%}\ud800-\udfff]/;

/**
 * Names of the records of one prefix. The names of different pairs differ, and an account's records share a hash slot.
 */
export interface KeyNames {
  /** Name of the record of an (account, route); without a route, of the record that the account's routes share. */
  record(account: string, route?: string): string;
  /**
   * A pattern for SCAN that matches the records of an account, or all records. It can match other keys as well: check
   * the names with {@link KeyNames.parse}.
   */
  pattern(account?: string): string;
  /** The escaped account and route of a record's name; undefined if headgate does not use such a name. */
  parse(key: string): { readonly account: string; readonly route: string | undefined } | undefined;
  /** Name of the blocks of an account: the start of the names of its records. */
  blocks(account: string): string;
  /** Name of the settled receipts of an account. */
  receipts(account: string): string;
  /** Name of the slots of requests in flight: of a route of an account, or of all its routes together. */
  slots(account: string, route?: string): string;
  /** The target of a block, as its record names it: the account, or one of its routes. */
  blocked(route: string | undefined): string;
  /** Escapes an account or a route. */
  escape(text: string): string;
}

/** `headgate:{acc_1}:r:POST /api/v1/emails`. A cluster chooses the slot by the text in the braces. */
export function createKeyNames(prefix: string): KeyNames {
  const start = `${prefix}:{`;
  return {
    record(account, route) {
      const tag = `${start}${escapeName(account)}}`;
      return route === undefined ? `${tag}:a` : `${tag}:r:${escapeName(route)}`;
    },
    blocks: (account) => `${start}${escapeName(account)}}:`,
    receipts: (account) => `${start}${escapeName(account)}}:s`,
    slots(account, route) {
      const all = `${start}${escapeName(account)}}:f`;
      return route === undefined ? all : `${all}:${escapeName(route)}`;
    },
    blocked: (route) => (route === undefined ? 'a' : `r:${escapeName(route)}`),
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
 * A closing brace would end the hash tag early, and an empty tag would not be one. A lone surrogate would reach the
 * server as the same replacement character as any other. All three are escaped, so that different texts stay different.
 */
function escapeName(text: string): string {
  if (text === '') return '%';
  if (!TO_ESCAPE.test(text)) return text;
  return text.replace(/[%}]|\p{Surrogate}/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Returns a pattern that matches only this text. */
export function glob(text: string): string {
  return text.replace(/[*?[\]\\^]/g, '\\$&');
}

/**
 * Name of the record of an idempotency key: `headgate:claim:{app_1:order-17}`. Scope and key are both in the braces, so
 * that claims spread over a cluster. The name ends with a brace. A limiter's names never do, so the two differ for all
 * prefixes.
 */
export function claimKey(prefix: string, scope: string, key: string): string {
  // Colons of the scope are escaped, so the first colon in the braces ends the scope.
  return `${prefix}:claim:{${escapeName(scope).replaceAll(':', '%003a')}:${escapeName(key)}}`;
}

/**
 * Name of the set of a scope's claims without an outcome: `headgate:claims:{app_1}:unresolved`. No other record ends so,
 * so it differs from all of them for all prefixes.
 */
export function unresolvedKey(prefix: string, scope: string): string {
  return `${prefix}:claims:{${escapeName(scope)}}:unresolved`;
}

/** A pattern for SCAN that matches the names of {@link claimKey}. It can match other keys as well. */
export function claimPattern(prefix: string): string {
  return `${glob(`${prefix}:claim:{`)}*}`;
}

/** The scope and the key of a name of {@link claimKey}; undefined if it never makes such a name. */
export function parseClaimKey(prefix: string, name: string): ClaimId | undefined {
  const start = `${prefix}:claim:{`.length;
  const end = name.indexOf(':', start);
  if (end === -1) return undefined;
  const scope = unescapeName(name.slice(start, end));
  const key = unescapeName(name.slice(end + 1, -1));
  return claimKey(prefix, scope, key) === name ? { scope, key } : undefined;
}

function unescapeName(text: string): string {
  if (text === '%') return '';
  return text.replace(/%([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** The stored parts of the adjustments of one prefix. */
export interface AdjustmentKeys {
  readonly adjustments: string;
  readonly history: string;
  readonly processes: string;
}

/**
 * Names of the stored parts of adjustments: `headgate:limits:{adjusted}:now`. All share a hash slot. No record of a
 * limiter or of a claim ends so, so they differ from those for all prefixes.
 */
export function adjustmentKeys(prefix: string): AdjustmentKeys {
  const tag = `${prefix}:limits:{adjusted}`;
  return { adjustments: `${tag}:now`, history: `${tag}:log`, processes: `${tag}:fleet` };
}
