import { isHeadgateError } from 'headgate';
import { destination, type Logger, pino } from 'pino';
import type { ListenerName } from '../config/tls-files.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { activeTraceFields, hasTracing } from '../exchange/request-trace.ts';
import type { HandshakeFailure } from '../tls/tls-server.ts';
import { DecisionLog } from './decision-log.ts';

/** Settings that a reload can change. */
export interface LogSettings {
  /** The least important lines that are written; `silent` for none. */
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Whether request lines name the application. */
  readonly application: boolean;
  /** Whether request lines name the account. Its id may be personal data. */
  readonly account: boolean;
}

/** The process's log: JSON lines. */
export interface Log {
  /** Its level is the settings' level. */
  readonly logger: Logger;
  /** Changes the settings, also while requests run. Without a call the level is `info`, and no line contains an id. */
  configure(settings: LogSettings): void;
  /** Writes the decisions into the lines of requests, if lines name accounts. */
  readonly decisions: DecisionLog;
  /** Whether lines may name accounts. */
  readonly namesAccounts: boolean;
  /**
   * Writes one line per answered request. The line contains no token, no header value and no query, and of the path
   * only the route's template. The level is `info`, or `warn` if the gateway itself answered with a status of 500 or
   * more.
   */
  request(exchange: Exchange, status: number): void;
  /** The level is `info`, or `debug` if the client only went away. */
  handshakeFailed(listener: ListenerName, failure: HandshakeFailure): void;
  /** Writes buffered lines and ends the log, before the process exits. It does not wait for a stalled reader. */
  close(): Promise<void>;
}

/**
 * Bytes of lines that are buffered for a slow reader. Further lines are dropped, because the gateway must not run out
 * of memory.
 */
const MAX_BUFFERED_BYTES = 16_777_216;
const CLOSE_MS = 500;
/**
 * For a process that shares its pipe with others: a pipe does not mix up the writes of several processes if each write
 * is at most 4,096 bytes long. The sink needs room for a line between the two.
 */
const SHARED_PIPE = { minLength: 3_072, maxWrite: 4_096 };
/** So many characters are at most 3,072 bytes, so the sink can still send them in one write. */
const SHARED_BATCH = 1_024;

/**
 * Lines are written together: as soon as they reach this many bytes, or after this time. A write costs a system call in
 * another thread, which must be woken for it.
 */
const LARGE_WRITES = { minLength: 16_384, maxWrite: 65_536 };
/** Lines are passed to the sink in batches, because the sink counts the bytes of all that waits for each text it gets. */
const BATCH = 8_192;
const FLUSH_MS = 10;

/** How many causes of an error are logged. */
const MAX_CAUSES = 3;

/** Errors that mean a state of the store or the process, not a mistake in the code. Many requests may fail with one. */
const EXPECTED = ['store_full', 'store_timeout', 'store_unavailable', 'claim_lost', 'closed'] as const;
/** Longest message of an expected error, in characters. */
const MAX_MESSAGE = 160;

/**
 * Logs only these properties: a Redis client's error may also contain the failed command, and with it a password or a
 * key.
 */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  // A stack per refused request would fill the log. The error's message includes its cause's message.
  if (EXPECTED.some((expected) => isHeadgateError(error, expected))) {
    return { type: name, message: message.slice(0, MAX_MESSAGE), code };
  }
  return {
    type: name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    stack,
    ...(cause === undefined || depth === MAX_CAUSES ? {} : { cause: describeError(cause, depth + 1) }),
  };
}

/** A replayed error is the upstream's, and was logged with the request that it answered first. */
function isOwnAnswer({ hasOwnAnswer, decision }: Exchange): boolean {
  return hasOwnAnswer && decision !== 'replayed';
}

const LEVELS = { info: 30, warn: 40 } as const;

/** The time now in ISO 8601. Many requests share a millisecond. */
function createTimeNow(): () => string {
  let ms = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== ms) {
      ms = now;
      text = new Date(now).toISOString();
    }
    return text;
  };
}

const timeNow = createTimeNow();
/** The fields of a route, as JSON. */
const routeTexts = new WeakMap<NonNullable<Exchange['route']>, string>();

function routeText(route: Exchange['route']): string {
  if (route === undefined) return '"route":null,"path":null,';
  const known = routeTexts.get(route);
  if (known !== undefined) return known;
  const text = `"route":${JSON.stringify(route.name)},"path":${JSON.stringify(pathOf(route.name))},`;
  routeTexts.set(route, text);
  return text;
}

/** Ids contain hex digits only. */
function traceText({ trace }: Exchange): string {
  const fields = trace?.fields;
  return fields === undefined ? '' : `"trace_id":"${fields.trace_id}","span_id":"${fields.span_id}",`;
}

/** The template of the path, from a route's name such as `GET /api/v1/chats/{chat_id}`. */
function pathOf(name: string): string {
  return name.slice(name.indexOf(' ') + 1);
}

/**
 * @param fd file descriptor, 1 for stdout
 * @param base fields of every line, for a process that shares the file with others
 */
export function createLog(fd = 1, base: { readonly worker: number } | null = null): Log {
  const sink = destination({
    fd,
    sync: false,
    maxLength: MAX_BUFFERED_BYTES,
    ...(base === null ? LARGE_WRITES : SHARED_PIPE),
  });
  // If the reader of the log goes away, the gateway must go on.
  sink.on('error', () => {});
  const batchLength = base === null ? BATCH : SHARED_BATCH;
  let batch = '';
  const passBatch = (): void => {
    if (batch === '') return;
    const lines = batch;
    batch = '';
    sink.write(lines);
  };
  // At the end of the process the sink writes what it has. It must have everything by then.
  const flushSync = sink.flushSync.bind(sink);
  sink.flushSync = () => {
    passBatch();
    flushSync();
  };
  let isClosing = false;
  let flushTimer: NodeJS.Timeout | undefined;
  // The sink does not flush while it writes, and then keeps lines that are shorter than its minimum.
  let isFlushDue = false;
  const flush = (): void => {
    flushTimer = undefined;
    isFlushDue = true;
    passBatch();
    sink.flush();
  };
  sink.on('drain', () => {
    if (!isFlushDue) return;
    isFlushDue = false;
    sink.flush();
  });
  const write = (line: string): void => {
    if (batch.length + line.length > batchLength) passBatch();
    batch += line;
    if (isClosing) passBatch();
    else flushTimer ??= setTimeout(flush, FLUSH_MS);
  };
  const serializers = { err: describeError };
  const mixin = hasTracing() ? { mixin: activeTraceFields } : {};
  const logger = pino({ base, timestamp: pino.stdTimeFunctions.isoTime, serializers, ...mixin }, { write });
  const baseText = base === null ? '' : `${JSON.stringify(base).slice(1, -1)},`;
  let hasApplication = false;
  let hasAccount = false;
  const decisions = new DecisionLog({
    isOn: () => hasAccount && logger.isLevelEnabled('info'),
    write: (fields) => write(`{"level":${LEVELS.info},"time":"${timeNow()}",${baseText}${fields}}\n`),
  });
  return {
    logger,
    decisions,
    configure(settings) {
      logger.level = settings.level;
      ({ application: hasApplication, account: hasAccount } = settings);
    },
    get namesAccounts() {
      return hasAccount;
    },
    request(exchange, status) {
      const level = status >= 500 && isOwnAnswer(exchange) ? 'warn' : 'info';
      if (!logger.isLevelEnabled(level)) return;
      const { id, method, door, response, route, decision, upstreamCause, shadow, startedAt } = exchange;
      const ms = Math.round((performance.now() - startedAt) * 1_000) / 1_000;
      // One text per request: the logger takes several times as long for an object. It would be the same line.
      write(
        `{"level":${LEVELS[level]},"time":"${timeNow()}",${baseText}${traceText(exchange)}"req_id":"${id}",` +
          `"method":${JSON.stringify(method)},${routeText(route)}` +
          (door === undefined ? '' : `"door":"${door}",`) +
          (hasApplication ? `"application":${JSON.stringify(exchange.application ?? null)},` : '') +
          (hasAccount ? `"account":${JSON.stringify(exchange.account?.id ?? null)},${decisions.take(id)}` : '') +
          `"status":${status},"ms":${ms},"decision":"${decision}"` +
          (upstreamCause === undefined ? '' : `,"cause":"${upstreamCause}"`) +
          (shadow === undefined ? '' : `,"shadow":"${shadow}"`) +
          (response.writableFinished ? '' : ',"aborted":true') +
          ',"msg":"request"}\n',
      );
    },
    handshakeFailed: (listener, { cause, isDeparture }) =>
      logger[isDeparture ? 'debug' : 'info']({ listener, cause }, 'TLS handshake failed'),
    close: () =>
      new Promise((resolve) => {
        decisions.flush();
        passBatch();
        isClosing = true;
        clearTimeout(flushTimer);
        const timer = setTimeout(() => {
          // Otherwise pino would write the rest at exit, and wait for the reader for ever.
          sink.destroy();
          resolve();
        }, CLOSE_MS);
        sink.once('close', () => {
          clearTimeout(timer);
          resolve();
        });
        sink.end();
      }),
  };
}
