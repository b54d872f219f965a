import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { createFleet } from 'headgate-bench/fleet';
import { processTree } from 'headgate-bench/process-figures';
import { freePort, startRedisServer } from 'headgate-bench/redis-server';
import { startGatewayProcess } from './gateway-process.mjs';
import { gatewayConfig, MANY } from './gateway-settings.mjs';

const READY_WITHIN_MS = 10_000;
export const [FLOOR, MEMORY, REDIS] = ['floor', 'headgate, memory', 'headgate, Redis'];
export const LEASES = 'headgate, Redis with leases';
export const WORKERS = 'headgate, Redis, 2 workers';
export const NODE_FLOOR = 'the same with node:http out';
export const [FASTIFY, EXPRESS, NGINX, HAPROXY] = ['fastify', 'express', 'nginx', 'haproxy'];
const [AGAINST_MEMORY, AGAINST_REDIS] = ['other build, memory', 'other build, Redis'];

/** How each candidate is started: `(world) => { port, pids, stop }`. */
const STARTS = {
  [FLOOR]: (world) => startNode('floor', world),
  [NODE_FLOOR]: (world) => startNode('nodeFloor', world),
  [MEMORY]: (world) => startHeadgate('memory', world),
  [REDIS]: (world) => startHeadgateOnRedis(world),
  [LEASES]: (world) => startHeadgateOnRedis({ ...world, leases: true }),
  [WORKERS]: (world) => startHeadgateOnRedis({ ...world, workers: 2 }),
  [FASTIFY]: (world) => startNode('fastify', world),
  [EXPRESS]: (world) => startNode('express', world),
  [NGINX]: (world) =>
    startServer('nginx', { ...world, isLimited: true }, nginxConfig, (file) => ['-c', file, '-e', '/dev/null']),
  [HAPROXY]: (world) => startServer('haproxy', world, haproxyConfig, (file) => ['-db', '-f', file]),
  [AGAINST_MEMORY]: ({ against, ...world }) => startHeadgate('memory', { ...world, dist: against }),
  [AGAINST_REDIS]: ({ against, ...world }) => startHeadgateOnRedis({ ...world, dist: against }),
};

/** Candidates that are servers of their own, by the arguments that print their version. */
const PROGRAMS = { [NGINX]: ['-v'], [HAPROXY]: ['-v'] };

/** What a candidate does less than headgate. */
export const LESS = {
  [FLOOR]: 'no key, limit, log, deadline or bound',
  [NODE_FLOOR]: 'no key, limit, log, deadline or bound',
  [FASTIFY]: 'no key; one window',
  [EXPRESS]: 'no key; one window',
  [NGINX]: 'no key; a rate per second instead of windows',
  [HAPROXY]: 'no key; one sliding average instead of windows',
};

/** @returns the version of each program that is installed */
export const programVersions = () => versionsOf(PROGRAMS);

/** @param programs by name, the arguments that print the version */
export function versionsOf(programs) {
  const found = Object.entries(programs).flatMap(([name, args]) => {
    const { error, stdout, stderr } = spawnSync(name, args, { encoding: 'utf8' });
    return error ? [] : [[name, /\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0] ?? 'unknown']];
  });
  return Object.fromEntries(found);
}

/**
 * The names of the candidates that are measured.
 * @param programs what `programVersions` has found
 * @param against whether another build of headgate is measured as well
 */
export function candidateNames({ programs, against }) {
  return Object.keys(STARTS).filter((name) => {
    if (name === AGAINST_MEMORY || name === AGAINST_REDIS) return against;
    return !(name in PROGRAMS) || name in programs;
  });
}

/**
 * Starts one candidate.
 * @param world `{ folder, upstreamPort, against, profile }`: a folder for files, the port of the upstream, the `dist`
 *   folder of another build, and a folder for CPU profiles
 */
export const startCandidate = (name, world) => STARTS[name](world);

async function startNode(proxy, { upstreamPort, profile }) {
  const fleet = createFleet(new URL('gateway-proxies.mjs', import.meta.url), profile);
  await fleet.start(proxy, { proxy, upstream: `http://127.0.0.1:${upstreamPort}` });
  const { port, pid } = await fleet.ask(proxy, {});
  return { port, pids: [pid], stop: () => fleet.stop() };
}

/** Names the files of each gateway: two that start at the same time must not share them. */
let started = 0;

export async function startHeadgate(store, world) {
  const { folder, upstreamPort, workers, leases, dist, profile, name = `headgate-${++started}` } = world;
  const config = { ...gatewayConfig({ store, upstreamPort, workers, leases }), ...world.more };
  const { pid, ...gateway } = await startGatewayProcess({ folder, name, config, dist, profile });
  return { ...gateway, pids: processTree(pid) };
}

async function startHeadgateOnRedis(world) {
  const server = await startRedisServer();
  const gateway = await startHeadgate(`redis://127.0.0.1:${server.port}`, world);
  return {
    ...gateway,
    redis: server.version,
    async stop() {
      await gateway.stop();
      server.stop();
    },
  };
}

/**
 * Starts a proxy that is a program of its own.
 * @param world its fields are passed to `configOf`, with the port
 */
export async function startServer(name, world, configOf, argsOf) {
  const port = await freePort();
  const folder = `${world.folder}/${name}-${port}`;
  mkdirSync(folder);
  const file = `${folder}/config`;
  writeFileSync(file, configOf({ ...world, folder, port }));
  // Caddy writes its lines to the standard error.
  const child = spawn(name, argsOf(file), { stdio: 'ignore', env: { ...process.env, HOME: folder } });
  const kill = () => child.kill('SIGTERM');
  process.once('exit', kill);
  await listening(child, port, name);
  return {
    port,
    pids: processTree(child.pid),
    stop() {
      process.off('exit', kill);
      kill();
    },
  };
}

async function listening(child, port, name) {
  const end = performance.now() + READY_WITHIN_MS;
  while (child.exitCode === null && performance.now() < end) {
    const isOpen = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isOpen) return;
    await wait(50);
  }
  child.kill();
  throw new Error(`${name} did not listen within ${READY_WITHIN_MS} ms`);
}

/** Its log goes to /dev/null, as that of headgate does. With a port for decisions, headgate decides, and not nginx. */
export const nginxConfig = ({ folder, port, upstreamPort, decisionsPort, isLimited = false }) => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log /dev/null;
  client_body_temp_path ${folder}/nginx-body;
  proxy_temp_path ${folder}/nginx-proxy;
  fastcgi_temp_path ${folder}/nginx-fastcgi;
  uwsgi_temp_path ${folder}/nginx-uwsgi;
  scgi_temp_path ${folder}/nginx-scgi;
  keepalive_requests ${MANY};
  ${isLimited ? 'limit_req_zone $arg_account_id zone=keys:10m rate=1000000r/s;' : ''}
  ${decisionsPort === undefined ? '' : `upstream headgate { server 127.0.0.1:${decisionsPort}; keepalive 256; keepalive_requests ${MANY}; }`}
  upstream api { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests ${MANY}; }
  server {
    listen 127.0.0.1:${port};
    location / {
      ${isLimited ? 'limit_req zone=keys burst=1000000 nodelay;' : ''}
      ${decisionsPort === undefined ? '' : NGINX_ASKS}
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
    ${decisionsPort === undefined ? '' : NGINX_DOOR}
  }
}
`;

/** As on the page of nginx, without the answers to rejections and the refund. */
const NGINX_ASKS = `
      auth_request /_headgate;
      auth_request_set $headgate_limit $upstream_http_x_ratelimit_limit;
      auth_request_set $headgate_remaining $upstream_http_x_ratelimit_remaining;
      auth_request_set $headgate_reset $upstream_http_x_ratelimit_reset;
      auth_request_set $headgate_receipt $upstream_http_x_headgate_receipt;
      add_header X-RateLimit-Limit $headgate_limit always;
      add_header X-RateLimit-Remaining $headgate_remaining always;
      add_header X-RateLimit-Reset $headgate_reset always;
`;
const NGINX_DOOR = `
    location = /_headgate {
      internal;
      proxy_pass http://headgate/decide/nginx;
      proxy_http_version 1.1;
      proxy_pass_request_body off;
      proxy_set_header Connection "";
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-Method $request_method;
      proxy_set_header X-Original-URI $request_uri;
      proxy_set_header X-Original-URL "";
      proxy_set_header X-Forwarded-For $remote_addr;
    }
`;

const haproxyConfig = ({ port, upstreamPort }) => `
global
  log stdout format raw local0
  nbthread 1
  maxconn 1024
defaults
  log global
  option httplog
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
backend keys
  stick-table type string len 64 size 100k expire 2m store http_req_rate(1m)
frontend clients
  bind 127.0.0.1:${port}
  http-request track-sc0 url_param(account_id) table keys
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ${MANY} }
  default_backend api
backend api
  server upstream 127.0.0.1:${upstreamPort}
`;
