import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterFile } from 'headgate-testbed/after-file';

type Attributes = Readonly<Record<string, unknown>>;

/** A span as an exporter of OTLP sends it. */
export interface SentSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** 2 is a server's, 3 a client's. */
  readonly kind: number;
  readonly isError: boolean;
  readonly attributes: Attributes;
}

/** The last value of one series. */
export interface SentMetric {
  readonly name: string;
  readonly unit: string;
  /** Of a histogram its count. */
  readonly value: number;
  readonly attributes: Attributes;
}

interface Value {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly boolValue?: boolean;
  readonly doubleValue?: number;
}
type RawAttributes = readonly { readonly key: string; readonly value: Value }[];
interface RawPoint {
  readonly asInt?: string;
  readonly asDouble?: number;
  readonly count?: number;
  readonly attributes: RawAttributes;
}
interface RawMetric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: { readonly dataPoints: readonly RawPoint[] };
  readonly gauge?: { readonly dataPoints: readonly RawPoint[] };
  readonly histogram?: { readonly dataPoints: readonly RawPoint[] };
}
interface RawSpan extends Omit<SentSpan, 'attributes' | 'isError'> {
  readonly attributes: RawAttributes;
  readonly status?: { readonly code?: number };
}
interface Sent {
  readonly resourceSpans?: readonly { readonly scopeSpans: readonly { readonly spans: readonly RawSpan[] }[] }[];
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly RawMetric[] }[];
  }[];
}

function attributesOf(raw: RawAttributes): Attributes {
  return Object.fromEntries(
    raw.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  );
}

/** A collector of OpenTelemetry: it takes what an SDK sends in OTLP with JSON. */
export async function startCollector() {
  const spans: SentSpan[] = [];
  const metrics = new Map<string, SentMetric>();
  const bodies: string[] = [];
  const takeMetric = (path: string, { name, unit, sum, gauge, histogram }: RawMetric): void => {
    for (const point of (sum ?? gauge ?? histogram)?.dataPoints ?? []) {
      const attributes = attributesOf(point.attributes);
      const value = Number(point.asInt ?? point.asDouble ?? point.count);
      metrics.set(`${path} ${name} ${JSON.stringify(attributes)}`, { name, unit, value, attributes });
    }
  };
  const take = (path: string, text: string): void => {
    bodies.push(text);
    const { resourceSpans = [], resourceMetrics = [] }: Sent = JSON.parse(text);
    for (const span of resourceSpans.flatMap((one) => one.scopeSpans).flatMap((one) => one.spans))
      spans.push({ ...span, isError: span.status?.code === 2, attributes: attributesOf(span.attributes) });
    for (const metric of resourceMetrics.flatMap((one) => one.scopeMetrics).flatMap((one) => one.metrics))
      takeMetric(path, metric);
  };
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      take(request.url ?? '', text);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    /** Everything that was sent, as text. */
    text: () => bodies.join('\n'),
    metrics: (name: string): SentMetric[] => [...metrics.values()].filter((metric) => metric.name === name),
  };
}
