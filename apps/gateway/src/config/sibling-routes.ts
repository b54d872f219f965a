import type { RouteTemplate, Segment } from 'headgate-simulate/routes';
import { tolerantSegments } from './tolerant-path.ts';

/** A route whose literals are written as the most tolerant server reads them. */
export function tolerantTemplate({ method, segments }: RouteTemplate): RouteTemplate {
  const tolerant = segments.flatMap((segment): Segment[] =>
    'literal' in segment ? tolerantSegments(segment.literal).map((literal) => ({ literal })) : [segment],
  );
  return { method, segments: tolerant };
}

/**
 * How a client writes a path of `other` so that `route` takes it: `SPECIAL or special;a=1` for `GET /api/special`
 * beside `GET /api/{x}`. Undefined if no such spelling exists. Both routes are tolerant.
 */
export function avoidingSpelling(route: RouteTemplate, other: RouteTemplate): string | undefined {
  if (route === other || route.method !== other.method) return undefined;
  const compared = Math.min(lengthOf(route), lengthOf(other));
  const taken = takenLiteral(route.segments.slice(0, compared), other.segments.slice(0, compared));
  if (taken === APART) return undefined;
  const [own, theirs] = [route.segments[compared], other.segments[compared]];
  if (own && 'wildcard' in own)
    return spellingOf(taken ?? firstLiteral(other.segments.slice(compared))) ?? 'one with another slash';
  const isSameLength = own === undefined && theirs === undefined;
  return isSameLength || (own && theirs && 'wildcard' in theirs) ? spellingOf(taken) : undefined;
}

/** Without the wildcard at the end. */
function lengthOf({ segments }: RouteTemplate): number {
  const wildcard = segments.findIndex((segment) => 'wildcard' in segment);
  return wildcard === -1 ? segments.length : wildcard;
}

/** The two routes never match the same path, or the first one always wins. */
const APART = Symbol('apart');

/** The first literal of `others` for which `own` contains a parameter. Both lists are equally long. */
function takenLiteral(own: readonly Segment[], others: readonly Segment[]): string | typeof APART | undefined {
  let taken: string | undefined;
  for (const [i, segment] of own.entries()) {
    const theirs = others[i] as Segment;
    if ('literal' in segment && 'literal' in theirs) {
      if (segment.literal !== theirs.literal) return APART;
    } else if (taken === undefined) {
      // At the first place where only one route has a literal, that route wins.
      if ('literal' in segment) return APART;
      if ('literal' in theirs) taken = theirs.literal;
    }
  }
  return taken;
}

function firstLiteral(segments: readonly Segment[]): string | undefined {
  return segments.find((segment) => 'literal' in segment)?.literal;
}

function spellingOf(literal: string | undefined): string | undefined {
  return literal === undefined ? undefined : `${literal.toUpperCase()} or ${literal};a=1`;
}
