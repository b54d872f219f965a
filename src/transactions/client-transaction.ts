// biome-ignore-start lint/suspicious/noExplicitAny: only such patterns find one of several signatures
/**
 * The transaction that a handler gets: `PoolClient` of pg, `TransactionSql` of postgres.js, or `Transaction` of PGlite.
 */
export type TransactionOf<Client> = Client extends {
  connect: { (): Promise<infer PoolClient>; (callback: any): any };
}
  ? PoolClient
  : Client extends { begin: (options: any, run: (sql: infer TransactionSql) => any) => any }
    ? TransactionSql
    : Client extends { transaction: (run: (transaction: infer Transaction) => any) => any }
      ? Transaction
      : object;
// biome-ignore-end lint/suspicious/noExplicitAny: only such patterns find one of several signatures

/** A client's transaction for a handler. */
export interface GuardedTransaction {
  readonly transaction: object;
  /** From now on each use of the transaction throws. */
  revoke(): void;
}

/** What a pool's client offers besides statements. The transaction must keep its connection. */
const OF_POOL: readonly PropertyKey[] = ['release', 'end'];

/**
 * Wraps a client's transaction. Without that, a statement that a handler forgot to await would run after the commit, on
 * a connection that belongs to another request by then.
 */
export function guardTransaction(native: object): GuardedTransaction {
  let isOver = false;
  const check = (): void => {
    if (isOver)
      throw new Error('the transaction of this idempotency key is over: await each statement before you answer');
  };
  const transaction = new Proxy(native, {
    apply(target, _this, args) {
      check();
      return Reflect.apply(target as () => unknown, undefined, args);
    },
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function' || name === 'constructor') return value;
      if (OF_POOL.includes(name)) return () => {};
      // By the target itself: its private fields are unknown to a proxy.
      return (...args: unknown[]) => {
        check();
        return Reflect.apply(value, target, args);
      };
    },
  });
  return {
    transaction,
    revoke: () => {
      isOver = true;
    },
  };
}

/** Closes the connection of a transaction that does not end, if the client can do that: pg can. */
export function closeConnection(native: unknown): void {
  const { end, release } = Object(native) as { end?: unknown; release?: unknown };
  if (typeof end !== 'function' || typeof release !== 'function') return;
  Promise.resolve(Reflect.apply(end, native, [])).catch(() => {});
}
