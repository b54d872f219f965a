import { createHash } from 'node:crypto';
import type { LayeredLimits } from 'headgate/limits';
import { z } from 'zod';
import { checkJson } from '../config/check-json.ts';
import { candidateOf } from '../config/limits.ts';
import { shadow } from '../config/schema/shadow.ts';
import type { Config, ShadowConfig } from '../config/schema.ts';

/** Limits that run beside those in force. */
export interface Candidate {
  /** Processes with the same id run the same candidate. */
  readonly id: string;
  readonly source: 'config' | 'operator';
  readonly settings: ShadowConfig;
  /** Name of the operator's token; undefined if it is the config's, also of the others. */
  readonly by: string | undefined;
  readonly reason: string | undefined;
  /** In milliseconds since 1970. */
  readonly atMs: number | undefined;
}

const ID_DIGITS = 16;

/** The stored form of a candidate. A later version may add properties, so unknown ones are ignored. */
const stored = z.object({
  settings: shadow,
  by: z.string().max(200),
  reason: z.string().max(500).optional(),
  at: z.int().min(0).max(8.64e15),
});

export function configuredCandidate(config: Config): Candidate | undefined {
  const { shadow: settings } = config;
  if (settings === undefined) return undefined;
  const text = JSON.stringify([layersOf(config, settings), settings]);
  const id = createHash('sha256').update(text).digest('hex').slice(0, ID_DIGITS);
  return { id, source: 'config', settings, by: undefined, reason: undefined, atMs: undefined };
}

/** A candidate that an operator puts now. */
export function newCandidate(settings: ShadowConfig, by: string, reason: string | undefined): Candidate {
  const id = crypto.randomUUID().replaceAll('-', '').slice(0, ID_DIGITS);
  return { id, source: 'operator', settings, by, reason, atMs: Date.now() };
}

export function layersOf(config: Pick<Config, 'routes'>, settings: ShadowConfig): LayeredLimits {
  return candidateOf(config, settings);
}

export function writeCandidate({ settings, by, reason, atMs }: Candidate): string {
  return JSON.stringify({ settings, by, reason, at: atMs });
}

/** Reads a candidate that another process wrote. It is untrusted: undefined if this version cannot read it. */
export function readCandidate(id: string, text: string): Candidate | undefined {
  const checked = checkJson(stored, parse(text));
  if (!('value' in checked)) return undefined;
  const { settings, by, reason, at } = checked.value;
  return { id, source: 'operator', settings, by, reason, atMs: at };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
