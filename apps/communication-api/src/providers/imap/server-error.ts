import type { EgressFailure } from '../../security/net.ts';
import { withoutServerWords } from './server-words.ts';

/** Why a mail server could not be used. */
export type ServerFailure =
  /** No connection was made, or it was lost. */
  | EgressFailure
  /** The server does not speak the protocol, or not in the way that is needed. */
  | 'protocol'
  /** The server refused the user or the password. */
  | 'credentials'
  /** The server said that it cannot serve now. */
  | 'unavailable';

/**
 * A mail server could not be used. Nothing was changed on it. Neither message nor cause contains the server's words.
 */
export class ServerError extends Error {
  override readonly name = 'ServerError';

  constructor(
    readonly failure: ServerFailure,
    cause?: unknown,
  ) {
    super(`The mail server could not be used: ${failure}.`, { cause: withoutServerWords(cause) });
  }
}
