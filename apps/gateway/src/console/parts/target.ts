import type { Limit } from '../api/answers.ts';

/** Selects a limit: a layer, and in it all routes or one. */
export type Target = Limit['target'];

/** Names of the layers. */
export const LAYERS = [
  ['default', 'Default'],
  ['provider', 'Provider'],
  ['plan', 'Plan'],
  ['account', 'Account'],
] as const;
export type Layer = (typeof LAYERS)[number][0];

/** The default layer's name is empty. */
export function layerOf(target: Target): { readonly layer: Layer; readonly name: string } {
  for (const layer of ['account', 'provider', 'plan'] as const) {
    const name = target[layer];
    if (name !== undefined) return { layer, name };
  }
  return { layer: 'default', name: '' };
}

export function targetIn(layer: Layer, name: string, route: string): Target {
  return { ...(layer !== 'default' && { [layer]: name }), ...(route !== '' && { route }) };
}

/** The target that an address names. */
export function targetOf(query: URLSearchParams): Target {
  const given = ['account', 'provider', 'plan', 'route'].flatMap((field) => {
    const name = query.get(field);
    return name ? [[field, name]] : [];
  });
  return Object.fromEntries(given);
}

/** `provider linkedin` */
export function layerText(target: Target): string {
  const { layer, name } = layerOf(target);
  return layer === 'default' ? 'default' : `${layer} ${name}`;
}

/** `provider linkedin, POST /api/v1/emails` */
export function targetText(target: Target): string {
  return `${layerText(target)}, ${target.route ?? 'all methods'}`;
}
