import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
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
  [NGINX]: (world) => startServer('nginx', world, nginxConfig, (file) => ['-c', file, '-e', '/dev/null']),
  [HAPROXY]: (world) => startServer('haproxy', world, haproxyConfig, (file) => ['-db', '-f', file]),
  [AGAINST_MEMORY]: ({ against, ...world }) => startHeadgate('memory', { ...world, dist: against }),
  [AGAINST_REDIS]: ({ against, ...world }) => startHeadgateOnRedis({ ...world, dist: against }),
};

/** Candidates that are servers of their own, by the option that prints their version. */
const PROGRAMS = { [NGINX]: '-v', [HAPROXY]: '-v' };

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
export function programVersions() {
  const found = Object.entries(PROGRAMS).flatMap(([name, option]) => {
    const { error, stdout, stderr } = spawnSync(name, [option], { encoding: 'utf8' });
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

export async function startHeadgate(store, world) {
  const { folder, upstreamPort, workers, leases, dist, profile, name = `headgate-${Date.now()}` } = world;
  const config = gatewayConfig({ store, upstreamPort, workers, leases });
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

async function startServer(name, { folder, upstreamPort }, configOf, argsOf) {
  const port = await freePort();
  const file = `${folder}/${name}.conf`;
  writeFileSync(file, configOf({ folder, port, upstreamPort }));
  const child = spawn(name, argsOf(file), { stdio: ['ignore', 'ignore', 'inherit'] });
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

/** Its log goes to /dev/null, as that of headgate does. */
const nginxConfig = ({ folder, port, upstreamPort }) => `
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
  limit_req_zone $arg_account_id zone=keys:10m rate=1000000r/s;
  upstream api { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests ${MANY}; }
  server {
    listen 127.0.0.1:${port};
    location / {
      limit_req zone=keys burst=1000000 nodelay;
      proxy_pass http://api;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
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
