import { createClientIp } from 'headgate/client-ip';
import { type ConfigIssue, formatPath, issueIf } from './config-error.ts';
import { type JsonObject, objectOrEmpty } from './json.ts';
import { durationIssues } from './limit-checks.ts';

/** A network is an IPv6 /48. */
const NETWORK_BITS = 48;
const USUAL_FIELD = 'x-forwarded-for';
const NO_PROXY = 'is read only from trusted proxies: name yours in clientAddress.trustedProxies';

/** Checks how addresses are found. The schema reports values of another type. */
export function clientAddressIssues({ trustedProxies, header }: JsonObject): ConfigIssue[] {
  const options = [
    ...(Array.isArray(trustedProxies) ? trustedProxies.map((one) => ({ trustedProxies: [one] })) : []),
    ...(typeof header === 'string' ? [{ header, trustedProxies: 1 }] : []),
  ];
  const trustsNone = [undefined, 0].includes(trustedProxies as undefined) || isEmpty(trustedProxies);
  const isIgnored = typeof header === 'string' && header.toLowerCase() !== USUAL_FIELD && trustsNone;
  const issues = options.flatMap((option, index) => {
    try {
      createClientIp({ ...option, validate: false });
      return [];
    } catch (error) {
      const { message } = error as Error;
      const path = 'header' in option ? 'header' : `trustedProxies[${index}]`;
      return [{ path: `clientAddress.${path}`, reason: message.slice(message.indexOf(': ') + 2) }];
    }
  });
  return [...issues, ...issueIf('clientAddress.header', isIgnored ? NO_PROXY : undefined)];
}

function isEmpty(list: unknown): boolean {
  return Array.isArray(list) && list.length === 0;
}

/** Checks the limits in front of authentication. */
export function perAddressIssues({ perAddress, clientAddress }: JsonObject): ConfigIssue[] {
  const { ipv6Prefix = NETWORK_BITS + 1 } = objectOrEmpty(clientAddress);
  const [path, { windows, perNetwork }] = Array.isArray(perAddress)
    ? [['perAddress'], { windows: perAddress, perNetwork: undefined }]
    : [['perAddress', 'windows'], objectOrEmpty(perAddress)];
  const hasNoNetworks = perNetwork !== undefined && typeof ipv6Prefix === 'number' && ipv6Prefix <= NETWORK_BITS;
  const needed = `needs a clientAddress.ipv6Prefix of more than ${NETWORK_BITS} bits`;
  return [
    ...issueIf(formatPath(path), isEmpty(windows) ? 'must have a window, such as "600/1m"' : undefined),
    ...durationIssues(path, windows),
    ...durationIssues(['perAddress', 'perNetwork'], perNetwork),
    ...issueIf('perAddress.perNetwork', hasNoNetworks ? needed : undefined),
  ];
}
