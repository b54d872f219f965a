/** As in src/stores/redis/turn.ts, which a test compares. */
const MOST_CHECKS = 32;
const FEW_CHECKS = 4;

/** How many records each call of a turn of so many checks has. */
export function callSizes(checks) {
  const size = Math.max(FEW_CHECKS, Math.min(MOST_CHECKS, Math.ceil(checks / 4)));
  const sizes = [];
  for (let left = checks; left > 0; left -= size) sizes.push(Math.min(size, left));
  return sizes;
}

/**
 * The calls of a turn: on one server several accounts a call, on a cluster one. Requests of one account travel as a number.
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
