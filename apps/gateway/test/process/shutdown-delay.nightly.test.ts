/** With `shutdownDelayMs`, a load balancer sees 503 on /readyz while the process still serves, so no request is lost. */
import { Agent } from 'node:http';
import { eventually, pause, send } from 'headgate-testbed/raw-http';
import { held, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { configOf, type Gateway, startGateway, TOKEN } from '../support/gateway.ts';

const OPEN = { path: '/api/v1/open', headers: { 'x-api-key': TOKEN } };
const PROBE_MS = 100;

/** A load balancer: it polls /readyz, sends requests only to gateways that are ready, and reuses its connections. */
function startBalancer(gateways: readonly Gateway[]) {
  const agent = new Agent({ keepAlive: true });
  const ready = new Set(gateways);
  const failures: string[] = [];
  let requests = 0;
  let stopped = false;
  const probe = async (gateway: Gateway): Promise<void> => {
    while (!stopped) {
      const status = await send(gateway.port, { path: '/readyz' }).then(
        (reply) => reply.status,
        () => 0,
      );
      if (status === 200) ready.add(gateway);
      else ready.delete(gateway);
      await pause(PROBE_MS);
    }
  };
  const client = async (): Promise<void> => {
    while (!stopped) {
      const targets = [...ready];
      const target = targets[requests++ % targets.length] as Gateway;
      await send(target.port, { ...OPEN, agent }).then(
        (reply) => void (reply.status === 200 || failures.push(`${reply.status} ${reply.text}`)),
        (error: Error) => void failures.push(error.message),
      );
    }
  };
  const running = [...gateways.map(probe), ...Array.from({ length: 12 }, client)];
  return {
    failures,
    requests: () => requests,
    stop: async () => {
      stopped = true;
      await Promise.all(running);
      agent.destroy();
    },
  };
}

it('behind a load balancer that polls /readyz: no refused connection, no failed request', async () => {
  const upstream = await startUpstream();
  const config = configOf(upstream.url, { shutdownDelayMs: 4_000 });
  const [first, second] = await Promise.all([startGateway(config), startGateway(config)]);
  const balancer = startBalancer([first, second]);
  await eventually(() => balancer.requests() > 200, 'traffic');
  first.signal('SIGTERM');
  expect(await first.exited).toEqual({ code: 0, signal: null });
  const before = balancer.requests();
  await eventually(() => balancer.requests() > before + 100, 'traffic at the other gateway');
  await balancer.stop();
  expect(balancer.failures).toEqual([]);
  expect(first.log().find(({ msg }) => msg === 'stopped')).toMatchObject({ cutOff: 0 });
  await second.stop();
});

it('during the delay everything is served, with Connection: close; only /healthz and /readyz are 503', async () => {
  const hold = held();
  const upstream = await startUpstream(hold.behaviour);
  const gateway = await startGateway(configOf(upstream.url, { shutdownDelayMs: 60_000 }));
  const agent = new Agent({ keepAlive: true });
  const running = send(gateway.port, { ...OPEN, agent });
  await eventually(() => hold.waiting() === 1, 'the request at the upstream');
  gateway.signal('SIGTERM');
  await eventually(async () => (await send(gateway.port, { path: '/readyz' })).status === 503, 'that it is not ready');
  const draining = { status: 503, text: '{"status":"draining"}' };
  for (const port of [gateway.port, gateway.adminPort]) {
    expect(await send(port, { path: '/readyz' })).toMatchObject(draining);
    expect(await send(port, { path: '/healthz' })).toMatchObject(draining);
    expect(await send(port, { path: '/livez' })).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  }
  expect((await send(gateway.adminPort, { path: '/metrics' })).status).toBe(200);
  hold.release();
  expect(await running).toMatchObject({ status: 200, headers: { connection: 'close' } });
  expect(await send(gateway.port, { ...OPEN, agent })).toMatchObject({ status: 200, headers: { connection: 'close' } });
  agent.destroy();
  gateway.signal('SIGTERM');
  expect(await gateway.exited).toEqual({ code: 1, signal: null });
});
