import { METHODS } from 'node:http';

/** `GET /api/v1/chats/{chat_id}`, taken apart. */
export interface RouteTemplate {
  /** As written; what limits and metrics call the route. */
  readonly name: string;
  readonly method: string;
  /** Each a literal, or the name of a parameter. */
  readonly segments: readonly Segment[];
}

export type Segment = { readonly literal: string } | { readonly parameter: string };

const LITERAL = /^[A-Za-z0-9._~!$&'()+,;=@:-]*$/;
const PARAMETER = /^\{([A-Za-z][A-Za-z0-9_-]*)\}$/;
const DOTS = /^\.\.?(;.*)?$/;

/** Reads a route, or says what is wrong with it. */
export function parseRoute(text: string): RouteTemplate | { readonly reason: string } {
  const match = /^([A-Z]+) (\/.*)$/s.exec(text);
  if (match === null) return { reason: 'must be a method and a path, such as "POST /api/v1/emails"' };
  const [, method = '', path = ''] = match;
  if (!METHODS.includes(method) || method === 'CONNECT') return { reason: `${method} is no method that can be routed` };
  const segments = path.slice(1).split('/').map(parseSegment);
  const bad = segments.find((segment) => typeof segment === 'string');
  if (bad !== undefined) return { reason: bad };
  return refusalOfShape(segments as Segment[]) ?? { name: text, method, segments: segments as Segment[] };
}

/** What two routes that match the same paths have in common. */
export function shapeOf({ method, segments }: RouteTemplate): string {
  return `${method} ${segments.map((segment) => ('literal' in segment ? segment.literal : '{}')).join('/')}`;
}

/** Names of the parameters, in order. */
export function parametersOf({ segments }: RouteTemplate): string[] {
  return segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []));
}

function parseSegment(text: string): Segment | string {
  const parameter = PARAMETER.exec(text)?.[1];
  if (parameter !== undefined) return { parameter };
  if (DOTS.test(text)) return 'a dot segment can never match: such requests are refused';
  if (/[{}]/.test(text)) return `${JSON.stringify(text)}: a parameter is a whole segment, such as {chat_id}`;
  if (text.includes('*')) return 'wildcards are not supported';
  if (!LITERAL.test(text)) return `${JSON.stringify(text)} has a character that stands in no path, or only encoded`;
  return { literal: text };
}

function refusalOfShape(segments: readonly Segment[]): { reason: string } | undefined {
  const empty = segments.findIndex((segment) => 'literal' in segment && segment.literal === '');
  if (empty !== -1 && empty !== segments.length - 1) return { reason: 'has an empty segment (two slashes)' };
  const parameters = segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []));
  const twice = parameters.find((parameter, index) => parameters.indexOf(parameter) !== index);
  return twice === undefined ? undefined : { reason: `has the parameter {${twice}} twice` };
}
