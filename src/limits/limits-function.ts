import { OptionError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkLimited, type LayerInput, parseLayer } from './layer-input.ts';
import type { Layer } from './layers.ts';

const NOT_RETURNED =
  'must return a list of windows, or a plain object (expected allMethods, routes, unlimited, groups or lanes)';
/** Most texts of limits that are kept compiled for one function. */
const MAX_COMPILED = 1_000;

/**
 * Limits that a function returns are compiled once per text, so it may return new objects, or change them: a cache by
 * identity would hide the change. Stores cache by the identity of a window set, so equal limits must stay one layer.
 */
export function compiledLayers<Subject>(
  limits: (subject: Subject) => MaybePromise<LayerInput>,
  onCompiled: (layer: Layer) => void,
): (subject: Subject) => MaybePromise<Layer> {
  const layers = new Map<string | undefined, Layer>();
  const compile = (returned: LayerInput): Layer => {
    const text = textOf(returned);
    const known = layers.get(text);
    if (known !== undefined) return known;
    // Undefined would create a layer without limits.
    if (returned === undefined) throw new OptionError('limits(subject)', returned, NOT_RETURNED);
    const layer = parseLayer(returned, 'limits(subject)', 'route');
    checkLimited([layer], returned, 'limits(subject)');
    onCompiled(layer);
    // The oldest goes. If it is still in use, it is compiled once more.
    if (layers.size >= MAX_COMPILED) layers.delete(layers.keys().next().value);
    if (text !== undefined) layers.set(text, layer);
    return layer;
  };
  return (subject) => {
    const returned = limits(subject);
    return isPromise(returned) ? returned.then(compile) : compile(returned);
  };
}

/** Undefined if it has none: a bigint is a fault that parsing names. */
function textOf(limits: LayerInput): string | undefined {
  try {
    return JSON.stringify(limits);
  } catch {
    return undefined;
  }
}
