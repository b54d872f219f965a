import { describe } from 'headgate/internal';

/** Method and path of a route, taken apart. */
export interface RouteTemplate {
  readonly method: string;
  readonly segments: readonly Segment[];
}

/** A literal, the name of a parameter, or the wildcard at the end of a route. */
export type Segment = { readonly literal: string } | { readonly parameter: string } | { readonly wildcard: true };

const WILDCARD = '*';
const MISPLACED_WILDCARD = 'a wildcard is the whole last segment, as in "GET /files/*"';
const LITERAL = /^[A-Za-z0-9._~!$&'()+,;=@:-]*$/;
const PARAMETER = /^\{([A-Za-z][A-Za-z0-9_-]*)\}$/;
const DOTS = /^\.\.?(;.*)?$/;

/** Takes a route such as `GET /chats/{id}` apart, or returns the reason why it is invalid. */
export function parseTemplate(text: string): RouteTemplate | { readonly reason: string } {
  const match = /^([A-Z]+) (\/.*)$/s.exec(text);
  if (match === null) {
    return { reason: `must be a method and a path, such as "POST /api/v1/emails", got ${describe(text)}` };
  }
  const [, method = '', path = ''] = match;
  const segments = path.slice(1).split('/').map(parseSegment);
  const reason = segments.find((segment) => typeof segment === 'string') ?? flaw(segments as Segment[]);
  return reason === undefined ? { method, segments: segments as Segment[] } : { reason };
}

/** Equal for two routes that match the same requests. */
export function shapeOf({ method, segments }: RouteTemplate): string {
  return `${method} ${segments.map(shapeOfSegment).join('/')}`;
}

function shapeOfSegment(segment: Segment): string {
  if ('literal' in segment) return segment.literal;
  // A literal cannot contain these characters.
  return 'parameter' in segment ? '{}' : WILDCARD;
}

/** Names of the parameters, in order. */
export function parametersOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []));
}

function parseSegment(text: string): Segment | string {
  const parameter = PARAMETER.exec(text)?.[1];
  if (parameter !== undefined) return { parameter };
  if (text === WILDCARD) return { wildcard: true };
  if (DOTS.test(text)) return 'a dot segment never matches: such requests are refused';
  if (/[{}]/.test(text)) return `${describe(text)}: a parameter is a whole segment, such as {chat_id}`;
  if (text.includes(WILDCARD)) return MISPLACED_WILDCARD;
  if (!LITERAL.test(text)) return `${describe(text)} has a character that a path cannot have unencoded`;
  return { literal: text };
}

function flaw(segments: readonly Segment[]): string | undefined {
  const empty = segments.findIndex((segment) => 'literal' in segment && segment.literal === '');
  if (empty !== -1 && empty !== segments.length - 1) return 'has an empty segment (two slashes)';
  if (segments.slice(0, -1).some((segment) => 'wildcard' in segment)) return MISPLACED_WILDCARD;
  const parameters = parametersOf(segments);
  const twice = parameters.find((parameter, index) => parameters.indexOf(parameter) !== index);
  return twice === undefined ? undefined : `has the parameter {${twice}} twice`;
}
