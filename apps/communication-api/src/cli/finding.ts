/** What a check of the doctor has found. `note` is for the operator to know; `wrong` needs to be mended. */
export interface Finding {
  readonly level: 'ok' | 'note' | 'wrong';
  readonly text: string;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const note = (text: string): Finding => ({ level: 'note', text });
export const wrong = (text: string): Finding => ({ level: 'wrong', text });
