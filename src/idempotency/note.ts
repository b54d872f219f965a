import { OptionError } from '../base/errors.ts';
import type { NotedStep } from '../core/claim.ts';
import type { ClaimId, ClaimStore } from '../core/ports.ts';
import { fitsInBytes } from './outcome.ts';

/** A note with a step of a claim. */
export interface NoteOptions {
  /** A JSON value of at most 1 MiB, from which the store's `rows` write rows in the step itself. */
  readonly note?: unknown;
}

const MAX_NOTE_BYTES = 1_048_576;
/** JSON.stringify escapes NUL and lone surrogates in this way, and PostgreSQL's text can store neither. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * The note as JSON; undefined without one. Checked before anything is sent.
 * @throws OptionError
 */
export function encodeNote(
  { notes }: Pick<ClaimStore, 'notes'>,
  step: NotedStep,
  { scope, key }: ClaimId,
  note: unknown,
): string | undefined {
  if (note === undefined) return undefined;
  if (notes?.includes(step) !== true)
    throw refuse(`the claim store has no rows.${step}: see rows of createPostgresClaimStore`);
  let text: unknown;
  try {
    text = JSON.stringify(note);
  } catch {
    // Its message could show a part of the note.
  }
  if (typeof text !== 'string') throw refuse('must be a JSON value');
  if (!fitsInBytes(text, MAX_NOTE_BYTES)) throw refuse(`must be at most ${MAX_NOTE_BYTES} bytes of JSON`);
  if (UNSTORABLE.test(text)) throw refuse('must not contain NUL or a lone surrogate, which PostgreSQL cannot store');
  if (UNSTORABLE.test(JSON.stringify([scope, key])))
    throw refuse('must not be given with a scope or a key that contains NUL or a lone surrogate');
  return text;
}

/** The error never shows the note, which can hold a secret. */
export function refuse(reason: string): OptionError {
  return new OptionError('note', undefined, reason, 'a note');
}
