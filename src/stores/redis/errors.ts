/** The error for a record under one of headgate's keys that headgate did not write. */
export function foreignRecord(key: string | undefined): Error {
  return new Error(`the record ${key} was not written by headgate`);
}

/**
 * Whether the server is well although it replied with this error. Either headgate did not write the record, or a
 * cluster is moving its slot to another node. Neither must open the circuit breaker for all other records.
 */
export function isHarmless(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^(ERR )?(WRONGTYPE|HEADGATE|TRYAGAIN)|@user_script: (WRONGTYPE|HEADGATE)/.test(error.message)
  );
}

/** Whether the keys of a call were on two nodes, because a cluster is moving their slot. Nothing was executed. */
export function isSlotMoving(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('TRYAGAIN');
}

/** Whether the server lacks the script. Nothing was executed. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
