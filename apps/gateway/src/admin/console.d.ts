/** The console, as text. `apps/gateway/scripts/console.mjs` makes this module out of `apps/gateway/src/console`. */
declare module '#console' {
  export interface Asset {
    /** Relative to the page, whose path is empty. */
    readonly path: string;
    /** Media type. */
    readonly type: string;
    readonly text: string;
  }
  export const assets: readonly Asset[];
}
