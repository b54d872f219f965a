/** Without a config, `serve` runs a demonstration whose banner has three curl commands to try. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eventually } from 'headgate-testbed/raw-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort, type Gateway, serve } from '../support/gateway.ts';

const run = promisify(execFile);
let gateway: Gateway;
let commands: string[];

beforeAll(async () => {
  const port = await freePort();
  gateway = await serve(['--port', String(port)], port);
  commands = await eventually(() => {
    const found = curlsOf(gateway.output());
    return found.length >= 3 && found;
  }, 'three curl commands in the banner');
});
afterAll(() => gateway.stop());

/**
 * The commands of the banner: each line with curl, with a loop around it, and with further lines joined by a backslash.
 */
function curlsOf(banner: string): string[] {
  const joined = banner.replaceAll(/\\\n\s*/g, ' ');
  return joined
    .split('\n')
    .map((line) => line.trim().replace(/^\$ /, ''))
    .filter((line) => /\bcurl\b/.test(line) && line.includes('http://'))
    .map((line) => line.slice(Math.max(0, line.search(/\b(for|seq|curl)\b/))));
}

/** Runs a command and returns its output. Every curl gets -i, so that the output has the heads of the answers. */
async function shell(command: string): Promise<string> {
  const { stdout, stderr } = await run('sh', ['-c', command.replaceAll(/\bcurl\b/g, 'curl -sS -i')], {
    timeout: 20_000,
  });
  return stdout + stderr;
}

const statusesOf = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
const limitsOf = (text: string): string[] =>
  [...text.matchAll(/^x-ratelimit-limit: (\d+)/gim)].map(([, max]) => String(max));

describe('the demonstration', () => {
  it('prints three commands for its own port', () => {
    expect(commands).toHaveLength(3);
    for (const command of commands) expect(command).toContain(`:${gateway.port}/`);
  });

  it('the first is accepted, the second gets 429, the third shows another window', async () => {
    const outputs: string[] = [];
    for (const command of commands) outputs.push(await shell(command));
    const [accepted = '', rejected = '', other = ''] = outputs;
    expect(statusesOf(accepted)[0]).toBeGreaterThanOrEqual(200);
    expect(statusesOf(accepted)[0]).toBeLessThan(300);
    expect(statusesOf(rejected).at(-1)).toBe(429);
    expect(rejected).toMatch(/^retry-after: \d+/im);
    expect(statusesOf(other).length).toBeGreaterThan(0);
    expect(limitsOf(accepted)).toHaveLength(1);
    expect(limitsOf(other).at(-1)).not.toBe(limitsOf(rejected).at(-1));
  });

  it('I4: the first command with an idempotency key, run twice, sends once', async () => {
    const [command = ''] = commands;
    const keyed = command.replace('curl', "curl -H 'Idempotency-Key: mail-1'").replace('acc_alice', 'acc_bob');
    const [first, second] = [await shell(keyed), await shell(keyed)];
    expect(statusesOf(second)).toEqual(statusesOf(first));
    expect(first).not.toContain('Idempotency-Replayed');
    expect(second).toContain('Idempotency-Replayed: true');
    expect(second.split('\r\n\r\n').at(-1)).toBe(first.split('\r\n\r\n').at(-1));
  });

  it('needs a key, and knows its paths', async () => {
    expect((await gateway.ask('GET', '/healthz', { 'x-api-key': undefined })).status).toBe(200);
    const [command = ''] = commands;
    const target = /http:\/\/[^\s'"]+/.exec(command)?.[0] ?? '';
    const keyless = await shell(`curl '${target}' ${command.includes('POST') ? '-X POST' : ''}`);
    expect(statusesOf(keyless)).toEqual([401]);
    expect((await gateway.ask('GET', '/nowhere')).status).toBe(404);
  });

  it('prints a link with a token of the Admin API, on a port of the machine itself', async () => {
    const [link = ''] = gateway.output().match(/http:\S+#token=\S+/) ?? [];
    const { hostname, origin, hash } = new URL(link);
    const token = hash.slice('#token='.length);
    expect([hostname, token.length]).toEqual(['127.0.0.1', 32]);
    const ask = async (bearer: string) => {
      const reply = await fetch(`${origin}/v1/status`, { headers: { authorization: `Bearer ${bearer}` } });
      return [reply.status, ((await reply.json()) as { caller?: unknown }).caller];
    };
    expect(await ask(token)).toEqual([200, { name: 'demonstration', role: 'admin' }]);
    expect(await ask(token.replace(/.$/, ''))).toEqual([401, undefined]);
    // The log goes to the same place as the banner.
    expect(gateway.output().split(token)).toHaveLength(2);
  });

  it('ends on SIGTERM with 0', async () => {
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  });
});
