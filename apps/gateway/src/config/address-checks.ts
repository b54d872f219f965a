import { createClientIp } from 'headgate/client-ip';
import { type ConfigIssue, formatPath, issueIf } from './config-error.ts';
import { type JsonObject, objectOrEmpty } from './json.ts';
import { durationIssues } from './limit-checks.ts';

/** A network is an IPv6 /48. */
const NETWORK_BITS = 48;

/** Checks how addresses are found. The schema reports values of another type. */
export function clientAddressIssues({ trustedProxies, header }: JsonObject): ConfigIssue[] {
  const options = [
    ...(Array.isArray(trustedProxies) ? trustedProxies.map((one) => ({ trustedProxies: [one] })) : []),
    ...(typeof header === 'string' ? [{ header }] : []),
  ];
  return options.flatMap((option, index) => {
    try {
      createClientIp({ ...option, validate: false });
      return [];
    } catch (error) {
      const { message } = error as Error;
      const path = 'header' in option ? 'header' : `trustedProxies[${index}]`;
      return [{ path: `clientAddress.${path}`, reason: message.slice(message.indexOf(': ') + 2) }];
    }
  });
}

/** Checks the limits in front of authentication. */
export function perAddressIssues({ perAddress, clientAddress }: JsonObject): ConfigIssue[] {
  const { ipv6Prefix = NETWORK_BITS + 1 } = objectOrEmpty(clientAddress);
  const [path, { windows, perNetwork }] = Array.isArray(perAddress)
    ? [['perAddress'], { windows: perAddress, perNetwork: undefined }]
    : [['perAddress', 'windows'], objectOrEmpty(perAddress)];
  const isEmpty = Array.isArray(windows) && windows.length === 0;
  const hasNoNetworks = perNetwork !== undefined && typeof ipv6Prefix === 'number' && ipv6Prefix <= NETWORK_BITS;
  const needed = `needs a clientAddress.ipv6Prefix of more than ${NETWORK_BITS} bits`;
  return [
    ...issueIf(formatPath(path), isEmpty ? 'must have a window, such as "600/1m"' : undefined),
    ...durationIssues(path, windows),
    ...durationIssues(['perAddress', 'perNetwork'], perNetwork),
    ...issueIf('perAddress.perNetwork', hasNoNetworks ? needed : undefined),
  ];
}
