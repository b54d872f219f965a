import { isKeyExpiry, MAX_KEY_YEARS } from '../domain/key-expiry.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Entered } from './here.ts';

/** A fault of an entered value. */
export interface Fault {
  /** The name of the input. Absent: the fault is about the whole form. */
  readonly field?: string | undefined;
  readonly message: string;
}

const MAX_NAME = 200;
const MAX_EMAIL = 254;
export const MIN_PASSWORD = 12;
const MAX_PASSWORD = 200;

export const boxName = (field: string, value: string): string => `${field}-${value}`;

/** Reads the inputs of a form, and collects their faults. */
export class Inputs {
  readonly faults: Fault[] = [];
  #status: 409 | 422 = 422;

  constructor(private readonly entered: Entered) {}

  /** A value as it was entered. */
  raw(name: string): string {
    return this.entered.get(name) ?? '';
  }

  /** A name that people read. */
  name(field: string, what: string): string {
    const text = this.raw(field).trim();
    if (text === '') this.fault(field, `Enter ${what}.`);
    else if (text.length > MAX_NAME) this.fault(field, `Enter at most ${MAX_NAME} characters.`);
    else if (/[\p{Cc}\p{Cs}]/u.test(text)) this.fault(field, 'Enter text without control characters.');
    return text;
  }

  /** Like {@link name}, if it was entered; else null. */
  optionalName(field: string): string | null {
    return this.raw(field).trim() === '' ? null : this.name(field, '');
  }

  /** The values whose boxes were ticked. Each box uses a different name. */
  ticked<Value extends string>(field: string, values: readonly Value[]): readonly Value[] {
    return values.filter((value) => this.raw(boxName(field, value)) !== '');
  }

  /** An email address, in lower case. */
  email(field: string): string {
    const text = this.raw(field).trim().toLowerCase();
    if (!/^[^\s@\p{Cc}\p{Cs}]+@[^\s@\p{Cc}\p{Cs}]+$/u.test(text) || text.length > MAX_EMAIL)
      this.fault(field, 'Enter an email address, such as ann@example.com.');
    return text;
  }

  /** A new password. */
  newPassword(field: string): string {
    const text = this.raw(field);
    if (text.length < MIN_PASSWORD) this.fault(field, `Enter at least ${MIN_PASSWORD} characters.`);
    else if (text.length > MAX_PASSWORD) this.fault(field, `Enter at most ${MAX_PASSWORD} characters.`);
    return text;
  }

  /** One of some values. */
  choice<Value extends string>(field: string, values: readonly Value[]): Value | undefined {
    const text = this.raw(field);
    const found = values.find((value) => value === text);
    if (found === undefined) this.fault(field, 'Choose one of these.');
    return found;
  }

  /** The end of a day, until which a key is valid. */
  expiry(field: string, nowMs: number): Date {
    const text = this.raw(field);
    const end = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T23:59:59.000Z`) : new Date(Number.NaN);
    // The parser would turn a date such as the 31st of February into another date.
    const isDate = !Number.isNaN(end.getTime()) && end.toISOString().startsWith(text);
    if (!isDate || !isKeyExpiry(end, nowMs))
      this.fault(field, `Enter a date from today on, at most ${MAX_KEY_YEARS} years away.`);
    return end;
  }

  /**
   * Runs work that the rules of the API may refuse. A refusal is a fault: of a field, or of the whole form.
   * @returns undefined if it was refused
   */
  async attempt<Result>(field: string | undefined, work: () => Promise<Result> | Result): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ServiceError) || (error.status !== 409 && error.status !== 422)) throw error;
      // A form that was sent twice leads to a separate page, because none of its values is wrong.
      if (error.type === 'errors/already_exists' && field === undefined) throw error;
      // The text begins with the name of a field of the API.
      const message = error.message.replace(/^\w+: /, '');
      this.fault(field, `${message.charAt(0).toUpperCase()}${message.slice(1)}`, error.status);
      return undefined;
    }
  }

  fault(field: string | undefined, message: string, status: 409 | 422 = 422): void {
    this.#status = status;
    this.faults.push({ field, message });
  }

  /** The status of the answer that shows the faults. */
  get status(): 409 | 422 {
    return this.#status;
  }

  get isFaulty(): boolean {
    return this.faults.length > 0;
  }
}
