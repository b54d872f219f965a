import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { GateAnswer, GateEntry } from 'headgate/gate';
import type { MaybePromise } from 'headgate/stores';
import { isPromise } from '../base/is-promise.ts';
import { refuseExchange, sendReply } from '../exchange/answers.ts';
import { createExchange, type DecisionLabel, type Exchange, freeIfDone, isOpen } from '../exchange/exchange.ts';
import { type Refusal, refuseForNow, UNEXPECTED } from '../exchange/refusal.ts';
import { hasTracing, RequestTrace } from '../exchange/request-trace.ts';
import { type Health, type HealthCheck, healthCheckOf } from '../operations/health.ts';
import type { Log } from '../operations/log.ts';
import { CLIENT_GONE, type Metrics } from '../operations/metrics.ts';
import { createHttpServer, type TlsOptions } from '../tls/tls-server.ts';
import type { Traffic } from '../traffic/traffic.ts';
import { type Connections, watchConnections } from './connections.ts';
import type { Rules } from './rules.ts';
import { closeSilentConnections, type SilenceLimits } from './silence.ts';

/** The parts of the main listener. */
export interface ServerOptions {
  /** Returns the current rules. Called once per request, when its turn comes. */
  readonly rules: () => Rules;
  /** The last change of limits that the process obeys. */
  readonly revision: () => string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly traffic: Pick<Traffic, 'onAnswered'>;
  /** Undefined for a listener without TLS. */
  readonly tls?: TlsOptions | undefined;
  /** Most connections at a time. */
  readonly maxConnections: number;
  readonly silence: SilenceLimits;
  /** Longest time until a whole request has arrived, in milliseconds; 300,000 by default. */
  readonly requestMs?: number;
  readonly health: Health;
  /** The shadow candidate's verdict about a request so far, if it differs from the answer. */
  readonly verdict: (requestId: string) => Exchange['shadow'];
}

/** The main listener. */
export interface GatewayServer {
  readonly server: Server;
  readonly connections: Connections;
  /** Sets other limits for silent connections. */
  readonly setSilence: (limits: SilenceLimits) => void;
  /** From now on the last answer of each connection says `Connection: close`. */
  closeAfterLast(): void;
  /**
   * Stops listening. From now on requests get 503, and each connection closes. Resolves when nothing runs and no
   * connection is open.
   */
  drain(): Promise<void>;
}

const HEADERS_MS = 20_000;
const REQUEST_MS = 300_000;
const KEEP_ALIVE_MS = 65_000;

/** Takes requests through the stages. An unexpected error is answered with 500, and the process goes on. */
export function createGatewayServer(options: ServerOptions): GatewayServer {
  const { log, metrics, traffic, health } = options;
  const isTraced = hasTracing();
  let draining = false;
  const settings = {
    headersTimeout: Math.min(HEADERS_MS, options.requestMs ?? REQUEST_MS),
    requestTimeout: options.requestMs ?? REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 5_000,
    // The admission checks it, and answers with the error object.
    requireHostHeader: false,
  };
  const server = createHttpServer(settings, options.tls);
  // The size of the head is bounded to 16 KiB. Node would silently drop headers past a maximum count.
  server.maxHeadersCount = 0;
  const connections = watchConnections(server, {
    maxConnections: options.maxConnections,
    newId,
    onMalformed(id, status, reason) {
      metrics.onRequest(undefined, status);
      log.logger.info({ req_id: id, status, reason }, 'malformed request');
    },
  });

  const setSilence = closeSilentConnections(server, options.silence, connections.isQuiet);

  const run = (exchange: Exchange): void => {
    const check = checkOf(exchange);
    if (check !== undefined) {
      void health.answer(check).then((reply) => sendReply(exchange, reply));
      return;
    }
    const rules = options.rules();
    const preflight = rules.prepare?.(exchange);
    if (preflight !== undefined && !draining) {
      exchange.decision = 'preflight';
      sendReply(exchange, preflight);
      return;
    }
    if (draining) enterGate(exchange, rules, DRAINING);
    else onResult(exchange, rules, rules.limitAddress?.(exchange), admit);
  };
  const admit = (exchange: Exchange, rules: Rules, rejection: GateAnswer | undefined): void => {
    if (rejection === undefined) {
      onResult(exchange, rules, rules.admit(exchange), enterGate);
      return;
    }
    exchange.trace?.onRefused();
    exchange.decision = labelOf(rejection);
    sendAnswer(exchange, rejection);
  };
  const enterGate = (exchange: Exchange, rules: Rules, refusal: Refusal | undefined): void => {
    const { trace, route } = exchange;
    if (route !== undefined) trace?.onRoute(route.name, options.revision());
    if (refusal !== undefined) {
      trace?.onRefused();
      refuseExchange(exchange, refusal);
    }
    // If the client left while its body came in, nothing may be claimed or charged.
    else if (isOpen(exchange)) onResult(exchange, rules, rules.gate.enter(exchange, exchange.id), proceed);
  };
  const proceed = (exchange: Exchange, rules: Rules, entry: GateEntry): void => {
    exchange.decision = labelOf(entry);
    if (entry.kind === 'answer') sendAnswer(exchange, entry);
    else if (isOpen(exchange)) rules.forward(exchange, entry);
    else void entry.abandon();
  };
  const sendAnswer = (exchange: Exchange, { reply, replayed }: GateAnswer): void => {
    // A replay can be large, and takes up memory until the client reads it.
    if (replayed === true && exchange.buffer?.add(reply.body.length) === false) refuseExchange(exchange, NO_ROOM);
    else sendReply(exchange, reply);
  };
  /** Continues at once if the result is not a promise. */
  const onResult = <Result>(
    exchange: Exchange,
    rules: Rules,
    result: MaybePromise<Result>,
    next: (exchange: Exchange, rules: Rules, result: Result) => void,
  ): void => {
    if (!isPromise(result)) next(exchange, rules, result);
    else void result.then((value) => next(exchange, rules, value)).catch((error: unknown) => fail(exchange, error));
  };
  const fail = (exchange: Exchange, error: unknown): void => {
    log.logger.error({ req_id: exchange.id, err: error }, 'unexpected error');
    refuseExchange(exchange, UNEXPECTED);
    if (!exchange.response.writableEnded && exchange.response.headersSent) exchange.response.destroy();
  };
  /** The response was sent, or its client has gone. */
  const closed = (exchange: Exchange): void => {
    const { response } = exchange;
    freeIfDone(exchange);
    const status = response.headersSent ? response.statusCode : CLIENT_GONE;
    const check = exchange.route === undefined ? checkOf(exchange) : undefined;
    const { door, route } = exchange;
    if (door === undefined || check !== undefined)
      metrics.onRequest(check ?? route?.name ?? preflightLabel(exchange), status);
    else metrics.onDoorRequest(door, status);
    if (check !== undefined) return;
    traffic.onAnswered(exchange.decision);
    exchange.shadow = options.verdict(exchange.id);
    log.request(exchange, status);
    exchange.onClosed?.();
  };
  const handle = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    const exchange = createExchange(newId(), request, response, expectsContinue);
    if (!connections.add(exchange, () => closed(exchange))) return;
    if (isTraced) exchange.trace = new RequestTrace();
    // An error of the connection also closes the response, and the 'close' event is handled below.
    request.on('error', () => {});
    response.on('error', () => {});
    const start = (): void => {
      try {
        run(exchange);
      } catch (error) {
        fail(exchange, error);
      }
    };
    // Its turn may come in the context of another request, whose end makes room for it.
    connections.whenTurn(exchange, exchange.trace?.bind(start) ?? start);
  };
  server.on('request', (request, response) => handle(request, response, false));
  server.on('checkContinue', (request, response) => handle(request, response, true));
  // A server may ignore an expectation that it does not know (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (request, response) => handle(request, response, false));
  return {
    server,
    connections,
    closeAfterLast: () => connections.closeAfterLast(),
    setSilence,
    drain() {
      draining = true;
      // The server's own `close` would also destroy idle connections, with a reset for a request that is on its way.
      NetServer.prototype.close.call(server);
      return connections.drain();
    },
  };
}

/** Label of preflights in the metrics: they belong to no route. */
function preflightLabel({ decision }: Exchange): string | undefined {
  return decision === 'preflight' ? decision : undefined;
}

const DRAINING = refuseForNow('The gateway is shutting down: try again.');

const NO_ROOM = refuseForNow('Too many answers are being sent; the stored answer is not lost. Retry later.');

function newId(): string {
  return crypto.randomUUID();
}

function labelOf(entry: GateEntry): DecisionLabel {
  if (entry.kind === 'answer') {
    if (entry.replayed === true) return 'replayed';
    if (entry.reply.status < 300) return 'answered';
    return entry.decision !== undefined || entry.reply.status === 429 ? 'rejected' : 'refused';
  }
  if (entry.decision === undefined) return 'unlimited';
  return entry.decision.degraded ? 'degraded' : 'accepted';
}

function checkOf({ request }: Exchange): HealthCheck | undefined {
  return healthCheckOf(request.method, request.url);
}
