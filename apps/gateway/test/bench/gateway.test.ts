import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../../bench/support/${file}.mjs`, import.meta.url).href);
const { stageShares } = await load('gateway-stages');
const { gatewayReport } = await load('gateway-report');
const { startLoads } = await load('gateway-loads');
const { cpuMicrosOf, processTree } = await import('headgate-bench/process-figures' as string);

const BUNDLE = [
  '#!/usr/bin/env node',
  '// src/admission/keys.ts',
  'function find() {}',
  '// src/proxy/forwarding.ts',
  'function send() {}',
  '// src/main.ts',
].join('\n');
/** A file of the library. */
const CHUNK = ['// src/http/hop-by-hop.ts', 'function isHopByHop() {}'].join('\n');
const textOf = (url: string): string => (url.endsWith('headgate.cjs') ? BUNDLE : CHUNK);

describe('the stages of the topic gateway', () => {
  /** Samples of 10 microseconds, each from the outermost function to the innermost one. */
  const profileOf = (...stacks: string[][]) => {
    const nodes: object[] = [];
    const samples = stacks.map((stack) => {
      const first = nodes.length + 1;
      for (const [i, frame] of stack.entries()) {
        const [functionName = '', url = '', line = '-1'] = frame.split(', ');
        const callFrame = { functionName, url, lineNumber: Number(line) };
        nodes.push({ id: first + i, callFrame, children: i + 1 < stack.length ? [first + i + 1] : [] });
      }
      return nodes.length;
    });
    return { nodes, samples, timeDeltas: stacks.map(() => 10), startTime: 0 };
  };
  const ALWAYS = { from: 0, to: 1_000 };
  const END = ['(idle)'];
  const shares = (...stacks: string[][]) => {
    const all: Record<string, number> = stageShares(profileOf(...stacks, END), textOf, ALWAYS);
    return Object.fromEntries(Object.entries(all).filter(([, share]) => share > 0));
  };

  it('count a sample for the innermost function of headgate, also if Node runs what that has called', () => {
    const find = 'find, file:///dist/headgate.cjs, 2';
    const send = 'send, file:///dist/headgate.cjs, 4';
    const hash = 'update, node:internal/crypto/hash, 10';
    expect(shares([send, find, hash], [send, 'write, node:net, 3'])).toEqual({ key: 0.5, dispatch: 0.5 });
  });

  it('tell what concerns the answer from the rest of a forwarding', () => {
    const respond = '#onResponse, file:///dist/headgate.cjs, 4';
    expect(shares(['emit, node:events, 1', respond])).toEqual({ answer: 1 });
    expect(shares([respond, 'isHopByHop, file:///dist/chunk-1.cjs, 1'])).toEqual({ answer: 1 });
  });

  it('tell the parser of the server from that of the client, and collection of garbage from both', () => {
    const parse = 'parserOnHeadersComplete, node:_http_common, 5';
    const expected = { 'accept and parse': 1 / 3, dispatch: 1 / 3, 'garbage collection': 1 / 3 };
    expect(shares([parse], ['socketOnData, node:_http_client, 9', parse], ['(garbage collector)'])).toEqual(expected);
  });

  it('count only samples of the measured time, and no idle time', () => {
    const find = 'find, file:///dist/headgate.cjs, 2';
    const profile = profileOf([find], ['tick, node:timers, 1'], END, END);
    const all = stageShares(profile, textOf, { from: 15, to: 40 });
    expect(all.key).toBe(0);
    expect(all['Node and system calls, not told apart']).toBe(1);
  });
});

describe('the report of the topic gateway', () => {
  const small = (...micros: number[]) =>
    micros.map((cpuMicros) => ({ cpuMicros, perSecond: 1e6 / cpuMicros, p50Micros: 1, p99Micros: 2 }));
  const figures = {
    small: {
      floor: small(50, 50, 50, 50),
      'headgate, memory': small(75, 75, 75, 105),
      fastify: small(100, 100, 100, 100),
    },
  };
  const provenance = { versions: { nginx: '1.22.1' } };
  const { markdown, targets } = gatewayReport({
    provenance,
    rounds: 4,
    seconds: 1,
    otherWork: 0.123,
    stages: {},
    figures,
  });
  const target = (what: string) => targets.find((one: { what: string }) => one.what.includes(what));

  it('judges headgate by the floor and by fastify of the same round', () => {
    expect(target('memory relative to the floor')).toMatchObject({ measured: '1.50 (1.50–2.10)', met: true });
    expect(target('relative to fastify')).toMatchObject({ measured: '0.75 (0.75–1.05)', met: true });
  });

  it('names the programs that were not installed', () => {
    expect(markdown).toContain('Not installed, so not measured: haproxy.');
    expect(markdown).toContain('since wrk was not installed');
  });

  it('says how busy the machine was, and has no table of what was not measured', () => {
    expect(markdown).toContain('Other work used 12 % of the cores');
    expect(markdown).not.toContain('Large bodies');
  });
});

describe('the load of the topic gateway', () => {
  async function withServer(run: (port: number, seen: Set<string>) => Promise<void>) {
    const seen = new Set<string>();
    const server: Server = createServer((request, response) => {
      request.resume().on('end', () => {
        seen.add(`${request.method} ${request.url} ${request.headers['idempotency-key'] ?? ''}`);
        response.setHeader('content-length', 2).end('ok');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      await run((server.address() as AddressInfo).port, seen);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  it('sends each keyed request with a key of its own, by wrk or by a process of the benchmark', async () => {
    await withServer(async (port, seen) => {
      const loads = await startLoads();
      try {
        const figure = await loads.load({ workload: 'keyed', port, seconds: 1 });
        expect(figure.requests).toBeGreaterThan(0);
        expect(figure.p99Micros).toBeGreaterThanOrEqual(figure.p50Micros);
        expect(seen.size).toBeGreaterThanOrEqual(figure.requests);
      } finally {
        await loads.stop();
      }
    });
  });

  it.runIf(process.platform === 'linux')('is measured by the CPU time of all processes of a candidate', () => {
    const pids: number[] = processTree(process.ppid);
    expect(pids).toContain(process.pid);
    const before: number = cpuMicrosOf([process.pid]);
    for (const end = performance.now() + 20; performance.now() < end; );
    expect(cpuMicrosOf([process.pid])).toBeGreaterThan(before);
  });
});
