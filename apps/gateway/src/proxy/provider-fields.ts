import { type HeaderFields, NUMBER_FIELD_NAMES, retryAfterMs } from 'headgate/http';
import { fieldValues, forEachField } from 'headgate/internal';

/** Names that describe limits: of a provider, often with its own prefix or suffix. */
const OF_LIMITS = /^[a-z\d-]*ratelimit[a-z\d-]*$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/**
 * The fields of a provider's 429 that its error object keeps: `retry-after` as whole seconds, and what describes the
 * provider's limits under names that no client takes for the gateway's (S16).
 */
export function providerFields(raw: readonly string[]): HeaderFields {
  const fields: Record<string, string> = {};
  forEachField(raw, (_name, value, lowerName) => {
    const isOurs = (NUMBER_FIELD_NAMES as readonly string[]).includes(lowerName);
    if (!isOurs && OF_LIMITS.test(lowerName) && VALUE.test(value)) fields[lowerName] = value;
  });
  const waitMs = retryAfterMs(fieldReader(raw), Date.now());
  return waitMs === undefined ? fields : { ...fields, 'retry-after': String(Math.ceil(waitMs / 1_000)) };
}

/** Reads an upstream's field by its name, in any case; of a field that comes twice, all values. */
export function fieldReader(raw: readonly string[]): (name: string) => string | undefined {
  return (name) => {
    const values = fieldValues(raw, name.toLowerCase());
    return values.length === 0 ? undefined : values.join(', ');
  };
}
