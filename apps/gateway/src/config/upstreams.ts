import { type UpstreamSettings, upstreamSettings } from './schema/upstream.ts';
import type { Config } from './schema.ts';

/** The name of the config's `upstream` among its upstreams. */
export const DEFAULT_UPSTREAM = 'default';

/** Every upstream, by name. */
export function allUpstreams({
  upstream,
  upstreams,
}: Pick<Config, 'upstream' | 'upstreams'>): Map<string, UpstreamSettings> {
  const all = [[DEFAULT_UPSTREAM, upstream] as const, ...Object.entries(upstreams)];
  return new Map(all.map(([name, given]) => [name, upstreamSettings(given)]));
}

/** The base URL of every upstream, by name. */
export function upstreamUrls(config: Pick<Config, 'upstream' | 'upstreams'>): Map<string, string> {
  return new Map([...allUpstreams(config)].map(([name, { url }]) => [name, url]));
}

/** Host and port of an upstream's URL, in the form of the log and the metrics. */
export function hostAndPort({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/**
 * Returns a function that names a request's upstream: the route's, else the upstream of the account's provider, else
 * the default.
 */
export function upstreamChoice(
  providers: Config['providers'],
): (ofRoute: string | undefined, provider: string | undefined) => string {
  const ofProviders = new Map(Object.entries(providers).map(([name, { upstream }]) => [name, upstream]));
  return (ofRoute, provider) =>
    ofRoute ?? (provider === undefined ? undefined : ofProviders.get(provider)) ?? DEFAULT_UPSTREAM;
}
