import { freePort } from 'headgate-bench/redis-server';
import { nginxConfig, startHeadgate, startServer, versionsOf } from './gateway-candidates.mjs';
import { DESCRIPTOR, DOMAIN, REQUESTS } from './gateway-settings.mjs';

export const PROXY = 'headgate as the proxy';
const [NGINX, NGINX_DOOR] = ['nginx, no limit', 'nginx, auth_request'];
const [CADDY, CADDY_DOOR] = ['Caddy, no limit', 'Caddy, forward auth'];
const [GRPC, JSON_DOOR] = ["Envoy's rate limit service", 'POST /v1/decisions'];

/** By door, how it is started: `(world) => { port, headgate, proxy, stop }`; the middle two are lists of processes. */
const STARTS = {
  [PROXY]: (world) => withHeadgate(world, ({ port }) => ({ port })),
  [NGINX]: (world) => startBeside('nginx', nginxConfig, nginxArgs, world),
  [NGINX_DOOR]: (world) =>
    withHeadgate(world, (headgate) => startBeside('nginx', nginxConfig, nginxArgs, { ...world, ...headgate })),
  [CADDY]: (world) => startBeside('caddy', caddyConfig, caddyArgs, world),
  [CADDY_DOOR]: (world) =>
    withHeadgate(world, (headgate) => startBeside('caddy', caddyConfig, caddyArgs, { ...world, ...headgate })),
  [JSON_DOOR]: (world) => withHeadgate(world, ({ decisionsPort }) => ({ port: decisionsPort })),
  [GRPC]: (world) => withHeadgate(world, ({ rateLimitPort }) => ({ port: rateLimitPort })),
};

/** By door, the requests that the load sends. */
export const WORKLOADS = {
  ...Object.fromEntries(Object.keys(STARTS).map((name) => [name, 'small'])),
  [JSON_DOOR]: 'decision',
  [GRPC]: 'grpc',
};

/** The door without a limit that a door is compared with. */
export const WITHOUT = { [NGINX_DOOR]: NGINX, [CADDY_DOOR]: CADDY };

const PROGRAMS = { nginx: ['-v'], caddy: ['version'] };

/** @returns the version of each program that is installed */
export const doorVersions = () => versionsOf(PROGRAMS);

/** The doors that can be measured with these programs. */
export function doorNames(programs) {
  const needed = { [NGINX]: 'nginx', [NGINX_DOOR]: 'nginx', [CADDY]: 'caddy', [CADDY_DOOR]: 'caddy' };
  return Object.keys(STARTS).filter((name) => needed[name] === undefined || needed[name] in programs);
}

/** The programs without which some doors are not measured. */
export const DOOR_PROGRAMS = Object.keys(PROGRAMS);

/** Starts one door, with a gateway of its own. */
export const startDoor = (name, world) => STARTS[name](world);

async function withHeadgate(world, start) {
  const [decisionsPort, rateLimitPort] = [await freePort(), await freePort()];
  const more = {
    decisions: { host: '127.0.0.1', port: decisionsPort, secret: 'a secret of the benchmark, long enough' },
    rateLimitService: {
      port: rateLimitPort,
      domains: { [DOMAIN]: [{ ...DESCRIPTOR, route: routeOf(REQUESTS.small) }] },
    },
    clientAddress: { trustedProxies: ['loopback'] },
  };
  const { port, pids, stop } = await startHeadgate('memory', { ...world, more });
  const door = await start({ port, decisionsPort, rateLimitPort });
  return {
    proxy: [],
    ...door,
    headgate: pids,
    async stop() {
      await door.stop?.();
      await stop();
    },
  };
}

const routeOf = ({ method, path }) => `${method} ${path}`;

async function startBeside(program, configOf, argsOf, world) {
  const { port, pids, stop } = await startServer(program, world, configOf, argsOf);
  return { port, headgate: [], proxy: pids, stop };
}

const nginxArgs = (file) => ['-c', file, '-e', '/dev/null'];
const caddyArgs = (file) => ['run', '--adapter', 'caddyfile', '--config', file];

/** As on the page of Caddy, without the refund. */
const caddyConfig = ({ port, upstreamPort, decisionsPort }) => `
{
	admin off
	auto_https off
}
http://127.0.0.1:${port} {
	route {
${decisionsPort === undefined ? '' : caddyDoor(decisionsPort)}
		reverse_proxy 127.0.0.1:${upstreamPort} {
			header_down -X-RateLimit-*
			transport http {
				keepalive_idle_conns_per_host 256
			}
		}
	}
}
`;

const caddyDoor = (decisionsPort) => `
		reverse_proxy 127.0.0.1:${decisionsPort} {
			method GET
			rewrite /decide?
			header_up X-Forwarded-Method {method}
			header_up X-Forwarded-Uri {uri}
			transport http {
				keepalive_idle_conns_per_host 256
			}
			@limited {
				status 2xx
				header X-RateLimit-Limit *
			}
			handle_response @limited {
				header X-RateLimit-Limit {rp.header.X-Ratelimit-Limit}
				header X-RateLimit-Remaining {rp.header.X-Ratelimit-Remaining}
				header X-RateLimit-Reset {rp.header.X-Ratelimit-Reset}
			}
			@accepted status 2xx
			handle_response @accepted {
				vars headgate accepted
			}
		}
`;
