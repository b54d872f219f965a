import type { RequestFields } from './client-ip.ts';

/** How an adapter reads the client of a request. */
export interface PeerReader<Request> {
  /**
   * The address of the peer of the connection, or undefined. Absent if the adapter's platforms do not say
   * it, so that the user has to.
   */
  readonly address?: ((request: Request) => string | undefined) | undefined;
  readonly fields: (request: Request) => RequestFields;
  /** Advice for requests without an address, if this adapter knows a likely reason. */
  readonly advice?: string | undefined;
}
