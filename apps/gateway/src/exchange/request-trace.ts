import {
  type Context,
  context,
  createContextKey,
  createNoopMeter,
  metrics,
  type ProxyTracerProvider,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/** Fields of a log line by which it is found from its trace. */
export interface TraceFields {
  readonly trace_id: string;
  readonly span_id: string;
}

const SCOPE = 'headgate';
/**
 * Under this key the instrumentation of Node's HTTP server takes the route of a request, for its metrics and the name
 * of its span. The function for it is in a package of the SDK, which is not a dependency of the gateway.
 */
const RPC_METADATA = createContextKey('OpenTelemetry SDK Context Key RPC_METADATA');

/** Whether an SDK records traces. It is started before the gateway, with `node --import`. */
export function hasTracing(): boolean {
  const provider = trace.getTracerProvider();
  return !('getDelegateTracer' in provider) || (provider as ProxyTracerProvider).getDelegateTracer(SCOPE) !== undefined;
}

/** Whether an SDK records metrics. */
export function hasMetering(): boolean {
  return metrics.getMeter(SCOPE) !== createNoopMeter();
}

/** The ids of the active span; nothing without one. */
export function activeTraceFields(): TraceFields | object {
  return fieldsOf(trace.getActiveSpan()) ?? {};
}

function fieldsOf(span: Span | undefined): TraceFields | undefined {
  if (span === undefined) return undefined;
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
}

/** The server span of a request, and the context that it belongs to. */
export class RequestTrace {
  readonly #context: Context;
  readonly #span: Span | undefined;

  /** Call it in the context of the request. */
  constructor() {
    this.#context = context.active();
    this.#span = trace.getSpan(this.#context);
  }

  /** Undefined without a server span. */
  get fields(): TraceFields | undefined {
    return fieldsOf(this.#span);
  }

  /** Returns a function that runs in the context of the request, also if another request calls it. */
  bind<Args extends unknown[]>(run: (...args: Args) => void): (...args: Args) => void {
    return context.bind(this.#context, run);
  }

  /**
   * @param name of a route of the config, such as `GET /api/v1/chats/{chat_id}`
   * @param revision the last change of limits that this process obeys
   */
  onRoute(name: string, revision: string): void {
    const path = name.slice(name.indexOf(' ') + 1);
    const metadata = this.#context.getValue(RPC_METADATA) as { route?: string } | undefined;
    if (metadata !== undefined) metadata.route = path;
    this.#span?.setAttributes({ 'http.route': path, 'headgate.limits.revision': revision }).updateName(name);
  }

  /** The gateway refuses the request before it reaches a gate. */
  onRefused(): void {
    this.#span?.setAttribute('headgate.outcome', 'refused');
  }

  /** Begins the span of the request to the upstream. */
  startUpstream(method: string, host: string): UpstreamSpan {
    const [, address, port] = /^(.*):(\d+)$/.exec(host) as RegExpExecArray;
    const attributes = { 'http.request.method': method, 'server.address': address, 'server.port': Number(port) };
    const span = trace.getTracer(SCOPE).startSpan(method, { kind: SpanKind.CLIENT, attributes }, this.#context);
    return new UpstreamSpan(span, this.#context);
  }
}

/** The span of a request to the upstream. */
export class UpstreamSpan {
  readonly #span: Span;
  readonly #context: Context;

  constructor(span: Span, parent: Context) {
    this.#span = span;
    this.#context = trace.setSpan(parent, span);
  }

  /** Fields of the request to the upstream, in a flat list: the trace's fields replace the client's. */
  propagate(fields: readonly string[]): string[] {
    const own = new Set(propagation.fields().map((name) => name.toLowerCase()));
    const result: string[] = [];
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string;
      if (!own.has(name.toLowerCase())) result.push(name, fields[i + 1] as string);
    }
    propagation.inject(this.#context, result, { set: (list, name, value) => void list.push(name, value) });
    return result;
  }

  onStatus(status: number): void {
    this.#span.setAttribute('http.response.status_code', status);
    if (status >= 400) this.fail(String(status));
  }

  /** @param type few values */
  fail(type: string): void {
    this.#span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    this.#span.end();
  }
}
