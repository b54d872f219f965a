import { checkInteger, checkOptions } from '../../base/options.ts';
import { type ClaimRows, rowStatements } from './claim-rows.ts';
import { COMMON_OPTIONS, type CommonOptions, fillCommonOptions } from './options.ts';

/** Options of {@link createPostgresClaimStore}. */
export interface PostgresClaimStoreOptions extends CommonOptions {
  /**
   * Most claims of one scope (I13). A scope with as many gets `ScopeFullError` for its new keys, counted in
   * `stats().refusedInScope`; its known keys and other scopes are not affected. Each process counts the table from time
   * to time, so a scope can exceed this a little.
   * @default 1_000_000
   */
  readonly maxClaimsPerScope?: number | undefined;
  /** How results of more than 8 KiB travel. They never share a statement with other commands. */
  readonly largeValues?: PostgresLargeValueOptions | undefined;
  /**
   * Statements of your own that write rows together with a step of a claim: see {@link ClaimRows}. A step writes them if
   * it carries a note.
   * @default none, and a note is refused
   */
  readonly rows?: ClaimRows | undefined;
}

/** How large results travel. */
export interface PostgresLargeValueOptions {
  /**
   * Most bytes of large results per scope that wait or are under way in this process. Scopes take turns. Past it, or if
   * the turn does not come within 2 seconds, an outcome is stored without its value (I7), and a read throws
   * `ResultUnavailableError`. A single result always fits.
   * @default 8_388_608
   */
  readonly maxBytesPerScope?: number | undefined;
}

/** Options with their defaults. */
export type FilledClaimOptions = ReturnType<typeof fillClaimOptions>;

/** @throws OptionError */
export function fillClaimOptions(options: PostgresClaimStoreOptions) {
  checkOptions(options, [...COMMON_OPTIONS, 'maxClaimsPerScope', 'largeValues', 'rows'], 'options');
  const { maxClaimsPerScope = 1_000_000, largeValues = {}, rows } = options;
  checkOptions(largeValues, ['maxBytesPerScope'], 'largeValues');
  const { maxBytesPerScope = 8_388_608 } = largeValues;
  checkInteger('maxClaimsPerScope', maxClaimsPerScope, 1);
  checkInteger('largeValues.maxBytesPerScope', maxBytesPerScope, 0);
  return {
    ...fillCommonOptions(options),
    maxClaimsPerScope,
    maxLargeBytesPerScope: maxBytesPerScope,
    rows: rowStatements(rows),
  };
}
