import { signal } from '@preact/signals';
import type { Status } from '../admin/operations/status.ts';
import { linkedToken } from './route.ts';

/** Who uses the console, as the gateway says. */
type Caller = Status['caller'];
export type Role = Caller['role'];

/** Each role includes the rights of the earlier roles. */
const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

const STORED = 'headgate-token';

const stored = sessionStorage.getItem(STORED) ?? undefined;

/** The operator's token. It ends with the tab. */
export const token = signal<string | undefined>(stored ?? linkedToken);
/** The token of a link that was opened in a tab with another session: the operator chooses. */
export const offeredToken = signal<string | undefined>(linkedToken === stored ? undefined : stored && linkedToken);
/** Undefined until the gateway answers. */
export const caller = signal<Caller | undefined>(undefined);
/** Why the last session ended. */
export const endedBy = signal<string | undefined>(undefined);

if (token.value !== undefined) sessionStorage.setItem(STORED, token.value);

export function beginSession(given: string): void {
  sessionStorage.setItem(STORED, given);
  caller.value = undefined;
  endedBy.value = undefined;
  offeredToken.value = undefined;
  token.value = given;
}

/** @param reason undefined: the operator ended it */
export function endSession(reason?: string): void {
  if (reason !== undefined && offeredToken.value !== undefined) {
    beginSession(offeredToken.value);
    return;
  }
  sessionStorage.removeItem(STORED);
  token.value = undefined;
  offeredToken.value = undefined;
  caller.value = undefined;
  endedBy.value = reason;
}

/**
 * Whether the caller's role includes a role. The gateway decides; the console only hides actions that the gateway would
 * refuse.
 */
export function may(role: Role): boolean {
  return caller.value !== undefined && ROLES.indexOf(caller.value.role) >= ROLES.indexOf(role);
}
