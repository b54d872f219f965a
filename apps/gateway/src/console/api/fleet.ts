import { ApiError, ask, type Query } from './client.ts';

/**
 * Asks for the figures of all processes. While the store is away, this gateway knows only its own.
 * @throws ApiError
 */
export function askFleet<Answer>(path: string, query: Query, signal: AbortSignal): Promise<Answer> {
  return ask<Answer>('GET', path, { query: { ...query, fleet: true }, signal }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 503) return ask<Answer>('GET', path, { query, signal });
    throw error;
  });
}
