import type { Socket } from 'node:net';

/** Why a connection was not made. */
export type EgressFailure =
  /** The policy does not allow an address of the host, or the port. */
  | 'forbidden'
  /** The name of the host resolves to no address. */
  | 'unresolved'
  /** The host, or the proxy in front of it, refused the connection or ended it. */
  | 'refused'
  /** No connection was made in time. */
  | 'timeout'
  /** TLS could not be agreed on: the certificate is wrong, for example. */
  | 'tls'
  /** The proxy refused its user or password. */
  | 'proxy_credentials';

/** A connection to the outside was not made. Nothing was sent. The message names no address: an answer may show it. */
export class EgressError extends Error {
  override readonly name = 'EgressError';

  constructor(
    readonly failure: EgressFailure,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Where to connect to. */
export interface NetTarget {
  readonly host: string;
  readonly port: number;
  /** Whether TLS begins with the connection. Certificates are checked against `host`. */
  readonly tls: boolean;
}

/**
 * The only way out of the process. Each address is judged by the policy before a connection is made to it. If a proxy
 * is set for the account, every connection uses it.
 */
export interface Net {
  /** @throws EgressError */
  connect(target: NetTarget, signal: AbortSignal): Promise<Socket>;
  /** An HTTP request. No redirect is followed. @throws EgressError, or the error of `fetch` after the connection */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
}

/**
 * The text of a body.
 * @throws Error if it is longer: a cut text cannot be read as JSON
 */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const { bytes, isCut } = await readBounded(response, maxBytes);
  if (isCut) throw new Error('The answer is too long.');
  return new TextDecoder().decode(bytes);
}

/**
 * The first bytes of a body. The rest is not received: a server can send more than the memory can hold.
 * @returns `isCut`: there is more
 */
export async function readBounded(
  response: Response,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.byteLength;
    if (length > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), isCut: length > maxBytes };
}
