import type { Server } from 'node:http';
import { type ListenerName, validityOf } from '../config/tls-files.ts';
import { type HandshakeFailure, renewTls, type TlsMaterial, type TlsOptions } from './tls-server.ts';

/** Receives a listener's TLS events. */
export interface TlsReports {
  readonly log: { handshakeFailed(listener: ListenerName, failure: HandshakeFailure): void };
  readonly metrics: {
    /** @param expiresAtMs when the certificate in use expires, in milliseconds since 1970 */
    onCertificate(listener: ListenerName, expiresAtMs: number): void;
  };
}

/** The TLS of one listener: the certificate and key that its handshakes use now. */
export class ListenerTls {
  /** Options for the server of the listener; undefined without TLS. */
  readonly options: TlsOptions | undefined;
  readonly #listener: ListenerName;
  readonly #reports: TlsReports;
  #inUse: TlsMaterial | undefined;

  /** @param material undefined if the config lacks TLS for the listener, or the listener itself */
  constructor(listener: ListenerName, material: TlsMaterial | undefined, reports: TlsReports) {
    this.#listener = listener;
    this.#reports = reports;
    this.options = material && { material, onFailure: (failure) => reports.log.handshakeFailed(listener, failure) };
    this.#use(material);
  }

  /**
   * Handshakes of the server use other material from now on, if no restart is needed for it.
   * @param server undefined if the listener does not exist: it needs a restart anyway
   * @returns the paths of the config that need a restart
   */
  renew(server: Server | undefined, material: TlsMaterial | undefined): readonly string[] {
    if (server === undefined) return [];
    if (!renewTls(server, this.#inUse, material)) return [`${this.#listener}.tls`];
    this.#use(material);
    return [];
  }

  #use(material: TlsMaterial | undefined): void {
    this.#inUse = material;
    if (material !== undefined) {
      this.#reports.metrics.onCertificate(this.#listener, validityOf(material.cert).untilMs);
    }
  }
}
