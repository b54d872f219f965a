import type { ErrorStatus, ErrorTypesByStatus } from './error-types.ts';

/** Hosts, ports and users of a mail account, shown beside a 401: its owner sees the tried values. Never a password. */
export interface ConnectionParams {
  readonly imap_host: string;
  readonly imap_port: number;
  readonly imap_user: string;
  readonly smtp_host: string;
  readonly smtp_port: number;
  readonly smtp_user: string;
  readonly imap_encryption?: string;
}

/** `retry-after` while a part of the service is away: nobody knows for how long. */
export const RETRY_SECONDS = 5;

/** The parts of an error answer beside status, type and detail. */
export interface ErrorExtras {
  /** Seconds after which a retry makes sense: `retry-after`. */
  readonly retryAfter?: number | undefined;
  readonly connectionParams?: ConnectionParams | undefined;
  /** Logged, and never shown. */
  readonly cause?: unknown;
}

type Arguments = {
  [Status in ErrorStatus]: [status: Status, type: ErrorTypesByStatus[Status], detail: string, extras?: ErrorExtras];
}[ErrorStatus];

/** An error that a client may see: a pair of status and type from the table of errors, and what to do about it. */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';
  readonly status: ErrorStatus;
  readonly type: ErrorTypesByStatus[ErrorStatus];
  readonly retryAfter: number | undefined;
  readonly connectionParams: ConnectionParams | undefined;

  constructor(...[status, type, detail, extras = {}]: Arguments) {
    super(detail, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.status = status;
    this.type = type;
    this.retryAfter = extras.retryAfter;
    this.connectionParams = extras.connectionParams;
  }
}
