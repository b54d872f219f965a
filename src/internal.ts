/**
 * Parts of the library that the houses of this repository use beyond its published names. Everybody else must not: a
 * name can change or go with any version, so a house needs exactly the version that it was built with.
 * @module headgate/internal
 */

export { createAddressGate } from './address/gate.ts';
export { describe } from './base/errors.ts';
export { FairQueue } from './base/fair-queue.ts';
export { checkOptions } from './base/options.ts';
export { layerOf, placeOfTarget } from './core/adjustment.ts';
export { decorateStore } from './core/decorate-store.ts';
export { parseWindow } from './core/limit.ts';
export { isSeconds } from './core/misuse.ts';
export { shareOfMax } from './core/window-set.ts';
export { AnswerTape } from './gate/answer-tape.ts';
export { PieceList } from './gate/piece-list.ts';
export {
  aborted,
  alreadyRead,
  BODY_ERROR_TYPES,
  BodySize,
  DEFAULT_IDLE_MS,
  IdleTimer,
  tooLarge,
} from './http/body-limits.ts';
export { comparedFields, joinedField } from './http/compared-fields.ts';
export { createBodyField, createQueryField } from './http/field/body-field.ts';
export { isHopByHop, namedByConnection } from './http/hop-by-hop.ts';
export { parseMediaType } from './http/parse/media-type.ts';
export { decodeUtf8 } from './http/parse/utf8.ts';
export { digestText } from './http/platform.ts';
export { RATE_LIMIT_STYLES, rateLimitStyles } from './http/rate-limit-fields.ts';
export { fieldValues, forEachField } from './http/raw-fields.ts';
export { decodeResponse } from './http/stored-response.ts';
export { SETTINGS, settingsOf } from './idempotency/settings.ts';
export { faultOfCost, peekUnits } from './limits/unit-parts.ts';
export { isWindowSetSource } from './limits/window-set-source.ts';
export { WindowSets } from './limits/window-sets.ts';
export { ShadowChecks } from './shadow/checks.ts';
export { createShadowedLimiter } from './shadow/shadowed-limiter.ts';
export { createUnshardedStore } from './stores/memory/limits.ts';
