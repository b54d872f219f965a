import { z } from 'zod';

/** The `cors` of the config. */
export const cors = z.strictObject({
  origins: z
    .array(z.string())
    .describe('Origins of pages that may read answers, such as "https://app.example.com"; ["*"] for all'),
  headers: z
    .array(z.string())
    .default([])
    .describe('Names of request fields that pages may send, besides those that the gateway itself reads'),
  exposedHeaders: z
    .array(z.string())
    .default([])
    .describe('Names of answer fields that pages may read, besides those that the gateway itself writes'),
  credentials: z.boolean().default(false).describe('Whether pages may send cookies'),
  maxAgeS: z.int().min(0).max(86_400).default(600).describe('How long a browser stores a preflight, in seconds'),
});
