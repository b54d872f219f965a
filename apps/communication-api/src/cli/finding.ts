/** A finding of the doctor. `note` informs the operator; `wrong` needs a repair. */
export interface Finding {
  readonly level: 'ok' | 'note' | 'wrong';
  readonly text: string;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const note = (text: string): Finding => ({ level: 'note', text });
export const wrong = (text: string): Finding => ({ level: 'wrong', text });
