import type { RouteTemplate } from './route-template.ts';

/** Routes by method and path, as a tree with a level per segment. */
export interface RouteTree<Value> {
  /** Two routes that match the same requests share a place, which the first one keeps. */
  add(template: RouteTemplate, value: Value): void;
  /**
   * A HEAD without a HEAD route gets the value of the GET route.
   * @param segments of a path, decoded
   */
  find(method: string, segments: readonly string[], lookUp?: LookUp): Value | undefined;
}

/** Finds the literal that a segment of a path matches, among the literals of one place. */
export type LookUp = <Node>(literals: ReadonlyMap<string, Node>, segment: string) => Node | undefined;

interface Node<Value> {
  readonly literals: Map<string, Node<Value>>;
  parameter: Node<Value> | undefined;
  value: Value | undefined;
  /** The value of all paths below this place that match no other route. */
  wildcard: Value | undefined;
}

const exactly: LookUp = (literals, segment) => literals.get(segment);

export function createRouteTree<Value>(): RouteTree<Value> {
  const methods = new Map<string, Node<Value>>();
  return {
    add({ method, segments }, value) {
      let node = reached(methods, method);
      for (const segment of segments) {
        if ('wildcard' in segment) {
          // It is the last segment.
          node.wildcard ??= value;
          return;
        }
        if ('literal' in segment) node = reached(node.literals, segment.literal);
        else {
          node.parameter ??= createNode();
          node = node.parameter;
        }
      }
      node.value ??= value;
    },
    find(method, segments, lookUp = exactly) {
      const root = methods.get(method);
      const value = root && found(root, segments, 0, lookUp);
      return value === undefined && method === 'HEAD' ? this.find('GET', segments, lookUp) : value;
    },
  };
}

/**
 * A literal wins over a parameter, and a parameter over a wildcard, unless the rest of the path does not match behind
 * it. Visits a node once at most.
 */
function found<Value>(node: Node<Value>, segments: readonly string[], at: number, lookUp: LookUp): Value | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.value;
  const literal = lookUp(node.literals, segment);
  let value = literal && found(literal, segments, at + 1, lookUp);
  if (value === undefined && node.parameter !== undefined && segment !== '')
    value = found(node.parameter, segments, at + 1, lookUp);
  return value ?? node.wildcard;
}

function reached<Value>(nodes: Map<string, Node<Value>>, name: string): Node<Value> {
  const node = nodes.get(name) ?? createNode();
  nodes.set(name, node);
  return node;
}

function createNode<Value>(): Node<Value> {
  return { literals: new Map(), parameter: undefined, value: undefined, wildcard: undefined };
}
