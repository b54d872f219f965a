import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { caller } from '../session.ts';
import type { Status } from './answers.ts';
import { type ApiError, ask } from './client.ts';
import { usePolled } from './polled.ts';

const EVERY_MS = 2_000;

/** How the process does, for every page. */
export const status = signal<Status | undefined>(undefined);
/** The error of the last reading. */
export const statusError = signal<ApiError | undefined>(undefined);

/** Keeps {@link status} up to date while a session lasts. */
export function useStatus(token: string): void {
  const { value, error } = usePolled(token, EVERY_MS, (signal) => ask<Status>('GET', 'v1/status', { signal }));
  useEffect(() => {
    status.value = value;
    statusError.value = error;
    if (value !== undefined && JSON.stringify(value.caller) !== JSON.stringify(caller.peek()))
      caller.value = value.caller;
  }, [value, error]);
}
