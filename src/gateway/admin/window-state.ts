import type { z } from 'zod';
import type { WindowStatus } from '../../core/decision.ts';
import type { windowState } from './schemas.ts';

/** A window as answers have it. */
export function stateOf({ limit, max, remaining, durationMs, resetMs }: WindowStatus): z.input<typeof windowState> {
  return { limit, max, used: max - remaining, remaining, durationMs, resetMs };
}
