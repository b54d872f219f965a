/** The same values as in src/stores/shared/check-batcher.ts; a test compares the two. */
const MAX_CHECKS = 32;
const MIN_CHECKS = 4;

/** How many records each call has, if a turn has `checks` checks. */
export function callSizes(checks) {
  const size = Math.max(MIN_CHECKS, Math.min(MAX_CHECKS, Math.ceil(checks / 4)));
  const sizes = [];
  for (let left = checks; left > 0; left -= size) sizes.push(Math.min(size, left));
  return sizes;
}

/**
 * The calls of one turn: several accounts per call on one server, one account per call on a cluster. The requests of
 * one account are one check with a count.
 * @param requests `[{ account, askedAt }]`
 * @returns calls, each a list of `{ account, requests }`
 */
export function callsOf(requests, isCluster) {
  const checks = new Map();
  for (const request of requests) {
    const check = checks.get(request.account);
    if (check === undefined) checks.set(request.account, { account: request.account, requests: [request] });
    else check.requests.push(request);
  }
  const all = [...checks.values()];
  if (isCluster) return all.map((check) => [check]);
  let from = 0;
  return callSizes(all.length).map((size) => {
    from += size;
    return all.slice(from - size, from);
  });
}
