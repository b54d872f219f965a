import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls';
import { AbstractConnector } from 'ioredis';
import { sharedLookup } from './shared-lookup.ts';

/** The options of the client that its connector needs. */
interface ConnectorOptions {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsOptions | undefined;
  readonly disconnectTimeout: number;
}

/** Makes the connections of an ioredis client, as its own connector does, but with {@link sharedLookup}. */
export class RedisConnector extends AbstractConnector {
  readonly #options: ConnectorOptions;

  constructor(options: unknown) {
    super((options as ConnectorOptions).disconnectTimeout);
    this.#options = options as ConnectorOptions;
  }

  async connect(): Promise<typeof this.stream> {
    this.connecting = true;
    // The client can be disconnected in the turn in which it was created.
    await Promise.resolve();
    if (!this.connecting) throw new Error('Connection is closed.');
    const { host, port, tls } = this.#options;
    const where = { host, port, lookup: sharedLookup };
    this.stream = tls === undefined ? connectTcp(where) : connectTls({ ...where, ...tls });
    this.stream.once('error', (error) => {
      this.firstError = error;
    });
    return this.stream;
  }
}
