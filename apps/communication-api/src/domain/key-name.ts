/**
 * The name of an idempotency key in its application. A scoped key and any other caller never share a name, so none of
 * them can use up a key of another, or learn that it exists. No idempotency key contains a line feed.
 */
export const keyName = (scopeId: string | null, key: string): string => (scopeId === null ? key : `${scopeId}\n${key}`);
