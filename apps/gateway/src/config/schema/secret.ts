import { z } from 'zod';
import { name } from './values.ts';

/** `{ "env": "NAME" }` or `{ "file": "PATH" }`. Replaced by the secret before a config is checked. */
export const secretReference = z
  .strictObject({
    env: name.optional().describe('Name of an environment variable'),
    file: name.optional().describe("Path of a file, relative to the config's folder. Its last line break is dropped"),
  })
  .check((context) => {
    if (Object.keys(context.value).length === 1) return;
    context.issues.push({ code: 'custom', message: 'needs exactly one of env and file', input: context.value });
  })
  .meta({ description: 'Where a secret is read, in place of the secret itself', minProperties: 1, maxProperties: 1 });

/** A text that may be secret, so the config may refer to it. */
export const secret = (text: z.ZodString) =>
  z
    .union([text, secretReference], { error: 'must be a string, or { "env": "NAME" } or { "file": "PATH" }' })
    // A reference that is still there could not be read, which is a separate issue.
    .transform((value) => (typeof value === 'string' ? value : ''));
