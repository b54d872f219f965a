import { describe } from 'headgate/internal';
import type { ConfigIssue } from './config-error.ts';
import { arrayOrEmpty, type JsonObject, objectOrEmpty } from './json.ts';
import { isLoopback } from './loopback.ts';
import { tokenIssues } from './token-checks.ts';

/** A name or an IPv4 address, or an IPv6 address in brackets, as in the header `Host`. */
const HOST = /^(?:[a-z\d]([a-z\d.-]*[a-z\d])?|\[[\da-f:.]+\])$/i;

/** Checks the tokens of the Admin API, and whether they can be sent safely. */
export function adminIssues(file: JsonObject): ConfigIssue[] {
  const { host = '127.0.0.1', tls, tokens: given, hosts, insecure } = objectOrEmpty(file.admin);
  const tokens = arrayOrEmpty(given);
  const digests = new Map<string, string>();
  // A key of an application must not open the Admin API. The keys have been checked by themselves.
  tokenIssues(arrayOrEmpty(file.keys), 'keys', 'key', digests);
  const issues = tokenIssues(tokens, 'admin.tokens', 'token', digests);
  if (tokens.length > 0 && tls === undefined && insecure !== true && typeof host === 'string' && !isLoopback(host)) {
    const advice = 'add admin.tls, listen on 127.0.0.1, or set "insecure": true behind a proxy with TLS';
    issues.push({ path: 'admin.tokens', reason: `would be sent to ${describe(host)} without TLS: ${advice}` });
  }
  for (const [index, name] of arrayOrEmpty(hosts).entries()) {
    if (typeof name !== 'string' || HOST.test(name)) continue;
    const reason = `must be a host name such as "ops.example.com", without scheme and port, got ${describe(name)}`;
    issues.push({ path: `admin.hosts[${index}]`, reason });
  }
  return issues;
}
