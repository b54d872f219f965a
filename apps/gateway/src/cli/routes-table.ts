import { aligned, printable } from '../base/table.ts';
import { isNamed } from '../config/account-source.ts';
import type { Config } from '../config/schema.ts';
import { upstreamChoice, upstreamUrls } from '../config/upstreams.ts';

const SHARED = 'All paths of a route that ends in /* share its counts. HEAD has the route of GET if none lists it.\n';

/** The upstream of each route, then of each provider whose upstream is set. Ends with a line break. */
export function routesTable(config: Config): string {
  const urls = upstreamUrls(config);
  const choose = upstreamChoice(config.providers);
  const target = (route: string | undefined, provider?: string): string => {
    const name = choose(route, provider);
    return `${printable(urls.get(name) as string)} (${printable(name)})`;
  };
  const providers = Object.keys(config.providers).sort();
  const routes = config.routes.map(({ route, account, public: isPublic, idempotent = false, upstream }) => {
    const isByProvider = upstream === undefined && isNamed({ account }) && providers.length > 0;
    const to = `${target(upstream)}${isByProvider ? ', or by provider' : ''}`;
    return [route, `${account ?? '-'}${isPublic ? ' (public)' : ''}`, idempotent === false ? '-' : 'yes', to];
  });
  const tables = [aligned([['ROUTE', 'ACCOUNT', 'IDEMPOTENT', 'UPSTREAM'], ...routes])];
  if (providers.length > 0) {
    const rows = providers.map((provider) => [printable(provider), target(undefined, provider)]);
    tables.push(aligned([['PROVIDER', 'UPSTREAM'], ...rows]));
  }
  if (config.routes.some(({ route }) => route.endsWith('/*'))) tables.push(SHARED);
  return tables.join('\n');
}
