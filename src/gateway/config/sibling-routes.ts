import type { RouteTemplate, Segment } from './routes.ts';
import { tolerantSegments } from './tolerant-path.ts';

/** A route whose literals are written as the most tolerant server reads them. */
export function tolerantTemplate({ method, segments }: RouteTemplate): RouteTemplate {
  const tolerant = segments.flatMap((segment): Segment[] =>
    'parameter' in segment ? [segment] : tolerantSegments(segment.literal).map((literal) => ({ literal })),
  );
  return { method, segments: tolerant };
}

/**
 * The literal of `other` that a client avoids with another spelling, because a parameter of `route` takes it:
 * `special` of `GET /api/special` beside `GET /api/{x}`. Undefined if there is none. Both routes are tolerant.
 */
export function avoidableLiteral(route: RouteTemplate, other: RouteTemplate): string | undefined {
  if (route.method !== other.method || route.segments.length !== other.segments.length) return undefined;
  let avoidable: string | undefined;
  for (const [i, own] of route.segments.entries()) {
    const theirs = other.segments[i] as Segment;
    if ('literal' in own && 'literal' in theirs) {
      if (own.literal !== theirs.literal) return undefined;
    } else if (avoidable === undefined) {
      // Where only one of the two has a literal for the first time, that one wins.
      if ('literal' in own) return undefined;
      if ('literal' in theirs) avoidable = theirs.literal;
    }
  }
  return avoidable;
}
