import type {} from 'headgate-testbed/build';
import type {} from 'headgate-testbed/redis-servers';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The kind of server of the store. Redis without it. */
    storeKind: 'redis' | 'postgres';
  }
}
