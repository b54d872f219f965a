import { z } from 'zod';

/**
 * A line of text that people read: not empty, without control characters. PostgreSQL does not store NUL or half of a
 * surrogate pair.
 * @param max longest, in UTF-16 units
 */
export const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must be text without control characters');
