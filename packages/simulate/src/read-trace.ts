import { OptionError } from 'headgate';
import { checkOptions } from 'headgate/internal';
import { combinedParser } from './combined-line.ts';
import { getOrCreate } from './get-or-create.ts';
import { headgateParser } from './headgate-line.ts';
import { type FieldMap, jsonParser } from './json-line.ts';
import { type LineParser, Names, type ParsedLine, type ReadEvent } from './line.ts';
import type { LineCursor } from './line-cursor.ts';
import { linesOf, MAX_LINE, type TraceSource } from './lines.ts';
import { routeFinder, type TraceRoute } from './request-route.ts';
import { TimeOrder } from './time-order.ts';
import { emptyFigures, type Trace, type TraceEvent, type TraceFigures, type TraceFormat } from './trace.ts';

export type { FieldMap } from './json-line.ts';
export type { TraceSource } from './lines.ts';
export type { AccountPlace, TraceRoute } from './request-route.ts';

/** Options of {@link readTrace}. */
export interface ReadTraceOptions {
  /** @default 'auto' */
  readonly format?: TraceFormat | undefined;
  /** The routes that requests of an access log are matched with. The gateway's own log names them. */
  readonly routes?: readonly (string | TraceRoute)[] | undefined;
  /** Where requests of an access log name their account, such as `query.account_id`, for all routes. */
  readonly account?: string | undefined;
  /** The fields of a JSON line that are read. */
  readonly map?: FieldMap | undefined;
  /**
   * Lines that are so much out of order are sorted, in milliseconds. That many of the log are in memory.
   * @default 10_000
   */
  readonly sortMs?: number | undefined;
}

const FORMATS: readonly TraceFormat[] = ['auto', 'headgate', 'combined', 'json'];
/** Such a line does not show the format of the log. */
const UNDECIDED: readonly ParsedLine[] = ['unreadable', 'other', 'change'];
const CARRIAGE_RETURN = 13;
const DEFAULT_SORT_MS = 10_000;
const MAX_SORT_MS = 3_600_000;
const OPTIONS = ['format', 'routes', 'account', 'map', 'sortMs'];

/**
 * Reads a log as a trace. The source may be compressed by gzip. A line that is not a request is counted, never an error.
 * The trace can be read once, and must be read to its end.
 * @example
 * ```ts
 * const trace = readTrace(createReadStream('access.log.gz'), { routes: ['GET /chats/{id}'], account: 'query.account_id' });
 * ```
 * @throws OptionError. Reading throws TraceError if the source is damaged
 */
export function readTrace(source: TraceSource, options: ReadTraceOptions = {}): Trace {
  checkOptions(options, OPTIONS, 'options');
  const { format = 'auto', sortMs = DEFAULT_SORT_MS } = options;
  if (!FORMATS.includes(format)) throw new OptionError('format', format, 'must be auto, headgate, combined or json');
  if (!Number.isSafeInteger(sortMs) || sortMs < 0 || sortMs > MAX_SORT_MS)
    throw new OptionError('sortMs', sortMs, `must be an integer from 0 to ${MAX_SORT_MS}`);
  const figures = emptyFigures();
  const parse = parserOf(format, options, figures);
  return { figures, [Symbol.asyncIterator]: () => batches(source, parse, sortMs, figures) };
}

async function* batches(
  source: TraceSource,
  parse: (lines: LineCursor) => ParsedLine,
  sortMs: number,
  figures: TraceFigures,
): AsyncGenerator<readonly TraceEvent[]> {
  const reader = new TraceReader(parse, sortMs, figures);
  for await (const lines of linesOf(source, figures)) {
    while (lines.next()) reader.add(lines);
    const events = reader.take(false);
    if (events.length > 0) yield events;
  }
  yield reader.take(true);
}

/** Parses lines, counts them, and sorts their events. */
class TraceReader {
  readonly #parse: (lines: LineCursor) => ParsedLine;
  readonly #figures: TraceFigures;
  readonly #sorted: TimeOrder<ReadEvent>;
  /** Requests whose cost is corrected by a line that was read before they are let through. */
  readonly #settled = new Set<string>();

  constructor(parse: (lines: LineCursor) => ParsedLine, sortMs: number, figures: TraceFigures) {
    this.#parse = parse;
    this.#figures = figures;
    this.#sorted = new TimeOrder(sortMs);
  }

  add(lines: LineCursor): void {
    const length = lines.end - lines.from;
    if (length === 0 || (length === 1 && lines.bytes[lines.from] === CARRIAGE_RETURN)) return;
    const figures = this.#figures;
    figures.lines++;
    const parsed = length > MAX_LINE ? 'too_long' : this.#parse(lines);
    if (typeof parsed !== 'string') this.#addEvent(parsed);
    else {
      if (parsed === 'change') figures.changes++;
      const reason = parsed === 'change' ? 'other' : parsed;
      figures.skipped[reason] = (figures.skipped[reason] ?? 0) + 1;
    }
  }

  /** The events that no other can precede any more; at the end, all. */
  take(isEnd: boolean): readonly TraceEvent[] {
    const events: TraceEvent[] = [];
    for (let event = this.#sorted.take(isEnd); event !== undefined; event = this.#sorted.take(isEnd)) {
      if (event.settles !== undefined) this.#settled.delete(event.settles);
      else if (event.id !== undefined && !this.#settled.has(event.id)) event.id = undefined;
      events.push(event as TraceEvent);
    }
    return events;
  }

  #addEvent(event: ReadEvent): void {
    const isInTime = this.#sorted.add(event);
    if (event.settles !== undefined) {
      this.#settled.add(event.settles);
      return;
    }
    this.#figures.requests++;
    if (!isInTime) this.#figures.late++;
    if (!event.isExact) this.#figures.inexact++;
  }
}

/** Reads lines of one format. `auto` tries each format until one fits a line. */
function parserOf(
  format: TraceFormat,
  { routes = [], account, map = {} }: ReadTraceOptions,
  figures: TraceFigures,
): (lines: LineCursor) => ParsedLine {
  const names = new Names();
  const make: Record<Exclude<TraceFormat, 'auto'>, () => LineParser> = {
    headgate: () => headgateParser(names),
    combined: () => combinedParser(routeFinder(routes, account, false), names),
    json: () => jsonParser(map, routeFinder(routes, map.account === undefined ? account : undefined, true), names),
  };
  const formats = format === 'auto' ? (['headgate', 'combined', 'json'] as const) : [format];
  const parsers = new Map<Exclude<TraceFormat, 'auto'>, LineParser>();
  // If the format is known, an option that does not fit it is reported at once.
  if (format !== 'auto') parsers.set(format, make[format]());
  let chosen: LineParser | undefined = format === 'auto' ? undefined : parsers.get(format);
  if (format !== 'auto') figures.format = format;
  return (lines) => {
    if (chosen !== undefined) return chosen(lines) ?? 'unreadable';
    let first: ParsedLine | undefined;
    for (const name of formats) {
      if (!looksLike(name, lines.text)) continue;
      const parser = getOrCreate(parsers, name, make[name]);
      const parsed = parser(lines);
      first ??= parsed;
      if (parsed === undefined || UNDECIDED.includes(parsed)) continue;
      chosen = parser;
      figures.format = name;
      return parsed;
    }
    return first ?? 'unreadable';
  };
}

/**
 * Whether a format is worth a try: an account setting that an access log cannot provide is a mistake only for an access
 * log.
 */
function looksLike(format: TraceFormat, line: string): boolean {
  return format === 'combined' ? / \[[^\]]+\] "/.test(line) : line.startsWith('{');
}
