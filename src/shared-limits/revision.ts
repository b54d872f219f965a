import { OptionError } from '../base/errors.ts';
import type { Head } from '../core/adjustment.ts';

/** The revision without any change. */
const NONE = '0';

/** The text of a head, such as `17.k3v9q2`; `0` without a history. */
export function revisionOf(head: Head | undefined): string {
  return head === undefined ? NONE : `${head.version}.${head.nonce}`;
}

/**
 * @returns undefined for `0`
 * @throws OptionError
 */
export function headOf(revision: string): Head | undefined {
  if (revision === NONE) return undefined;
  const [, version, nonce] = /^(\d{1,15})\.(.+)$/s.exec(revision) ?? [];
  if (version === undefined || nonce === undefined)
    throw new OptionError('revision', revision, 'must be that of a change, such as "17.k3v9q2"');
  return { version: Number(version), nonce };
}

/** Lower-case letters and digits. */
export function randomText(length: number): string {
  return crypto.randomUUID().replaceAll('-', '').slice(0, length);
}
