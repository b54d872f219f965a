import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DefaultTheme } from 'vitepress';
import { API, addressOf, placeOf, ROOT, titleOf } from './pages.ts';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

type Item = DefaultTheme.SidebarItem;

/** A page, or a page with a shorter name than its heading. */
type Entry = string | readonly [page: string, name: string];

interface Group {
  readonly text: string;
  readonly entries: readonly Entry[];
  readonly collapsed?: boolean;
  /** A group that opens needs a page of its own: without one, VitePress puts a button into a button. */
  readonly link?: string;
}

/** In the order in which a newcomer needs them. */
export const GROUPS: readonly Group[] = [
  {
    text: 'Start',
    entries: [
      'docs/guide.md',
      ['apps/site/pages/playground.md', 'Playground'],
      ['docs/idempotency.md', 'Guide: idempotency'],
      ['docs/README.md', 'Find a page by task'],
    ],
  },
  {
    text: 'In your server',
    entries: [
      ['docs/adapters/README.md', 'All adapters'],
      ...['express', 'fastify', 'koa', 'nest', 'hono', 'h3', 'elysia', 'node', 'fetch'].map(
        (name): Entry => `docs/adapters/${name}.md`,
      ),
    ],
    collapsed: true,
    link: addressOf('docs/adapters/README.md'),
  },
  {
    text: 'Coming from elsewhere',
    entries: [
      ['docs/from/README.md', 'All libraries'],
      ...[
        'express-rate-limit',
        'rate-limiter-flexible',
        'fastify-rate-limit',
        'nestjs-throttler',
        'upstash-ratelimit',
        'hono-rate-limiter',
        'bottleneck',
      ].map((name): Entry => `docs/from/${name}.md`),
    ],
    collapsed: true,
    link: addressOf('docs/from/README.md'),
  },
  {
    text: 'Limits in depth',
    entries: [
      'docs/reference.md',
      'docs/shared-limits.md',
      'docs/leases.md',
      'docs/scale.md',
      'docs/limits-in-a-table.md',
      'docs/cooldown.md',
      'docs/sign-in.md',
      'docs/ai-gateway.md',
      'packages/simulate/docs/simulate.md',
      'docs/shadow.md',
      'docs/client-ip.md',
      'docs/http.md',
      'docs/answers.md',
      'docs/misuse.md',
      'docs/errors.md',
      'docs/which-store.md',
      'docs/redis.md',
      'docs/transactions.md',
      'docs/postgres.md',
      'docs/write-a-store.md',
      'docs/runtimes.md',
      'docs/opentelemetry.md',
    ],
  },
  {
    text: 'For your clients',
    entries: ['docs/rate-limits-clients.md', 'docs/idempotency-clients.md'],
  },
  {
    text: 'The gateway',
    entries: [
      'apps/gateway/docs/gateway.md',
      'apps/gateway/docs/config.md',
      'apps/gateway/docs/tenants.md',
      'apps/gateway/docs/upstream-responses.md',
      'apps/gateway/docs/other-proxies/README.md',
      'apps/gateway/docs/other-proxies/nginx.md',
      'apps/gateway/docs/other-proxies/caddy.md',
      'apps/gateway/docs/other-proxies/traefik.md',
      'apps/gateway/docs/other-proxies/envoy.md',
      'apps/gateway/docs/decision-api.md',
      'apps/gateway/docs/operations.md',
      'apps/gateway/docs/console.md',
      'apps/gateway/docs/admin-api.md',
      'apps/gateway/docs/production.md',
      'apps/gateway/docs/metrics.md',
      'apps/gateway/docs/runbook.md',
      'apps/gateway/docs/decisions.md',
    ],
  },
  {
    text: 'The Communication API',
    collapsed: true,
    link: addressOf('apps/communication-api/docs/README.md'),
    entries: [
      ['apps/communication-api/docs/README.md', 'Overview'],
      ...[
        'api',
        'sending',
        'imap',
        'smtp',
        'providers',
        'outlook',
        'accounts',
        'webhooks',
        'domains',
        'dashboard',
        'egress',
        'plugins',
        'production',
        'operations',
        'security',
        'decisions',
      ].map((name): Entry => `apps/communication-api/docs/${name}.md`),
    ],
  },
  {
    text: 'Rules and figures',
    entries: [
      'docs/rules.md',
      'docs/claims.md',
      'docs/decisions.md',
      'docs/benchmarks.md',
      'docs/performance.md',
      'docs/proofs.md',
    ],
  },
  {
    text: 'The project',
    entries: ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  },
];

export const NAV: DefaultTheme.NavItem[] = [
  { text: 'Guide', link: addressOf('docs/guide.md'), activeMatch: '^/docs/(?!benchmarks|gateway)' },
  { text: 'Playground', link: '/playground' },
  { text: 'Gateway', link: addressOf('apps/gateway/docs/gateway.md') },
  { text: 'API', link: '/api/', activeMatch: '^/api/' },
  { text: 'Benchmarks', link: addressOf('docs/benchmarks.md') },
  // Before 1.0 there is one version of the site: that of the last release.
  { text: `v${version}`, link: addressOf('CHANGELOG.md') },
];

export const pageOf = (entry: Entry): string => (typeof entry === 'string' ? entry : entry[0]);
export const nameOf = (entry: Entry): string => (typeof entry === 'string' ? titleOf(entry) : entry[1]);

const toItem = (entry: Entry): Item => ({ text: nameOf(entry), link: addressOf(pageOf(entry)) });

/** The sidebar of the docs. A page that no group has is in the last one, so that every page can be found. */
function sidebarOfDocs(pages: readonly string[]): Item[] {
  const listed = new Set(GROUPS.flatMap(({ entries }) => entries.map(pageOf)));
  const others = pages.filter((page) => placeOf(page).startsWith('docs/') && !listed.has(page)).sort();
  const groups = GROUPS.map(({ entries, ...group }): Item => ({ ...group, items: entries.map(toItem) }));
  return others.length === 0 ? groups : [...groups, { text: 'More', items: others.map(toItem) }];
}

/** The sidebar of the API reference, which TypeDoc writes. Its links are paths from the site's folder. */
function sidebarOfApi(): Item[] {
  const file = join(ROOT, API, 'typedoc-sidebar.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Item[]) : [];
}

export function sidebar(pages: readonly string[]): DefaultTheme.SidebarMulti {
  return {
    '/api/': [{ text: 'API reference', link: '/api/', items: sidebarOfApi() }],
    '/': sidebarOfDocs(pages),
  };
}
