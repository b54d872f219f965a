import type { Inputs } from './inputs.ts';

/** A form of a page, with its faults. */
export interface FaultyForm {
  /** The beginning of the ids of its inputs, which distinguishes it from the other forms. */
  readonly form: string;
  readonly inputs: Inputs;
}
