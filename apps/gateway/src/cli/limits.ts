import { parseArgs } from 'node:util';
import { objectOrEmpty } from '../config/json.ts';
import { readReferencedFile } from '../config/referenced-file.ts';
import { alternatives } from '../config/suggest.ts';
import type { Terminal } from './terminal.ts';
import { UsageError } from './usage.ts';

const OPTIONS = {
  admin: { type: 'string' },
  'token-file': { type: 'string' },
  account: { type: 'string' },
  provider: { type: 'string' },
  plan: { type: 'string' },
  route: { type: 'string' },
  reason: { type: 'string' },
  'for-ms': { type: 'string' },
  'if-version': { type: 'string' },
  'dry-run': { type: 'boolean' },
  wait: { type: 'boolean' },
  confirm: { type: 'boolean' },
  reset: { type: 'boolean' },
} as const;

const TARGET = ['account', 'provider', 'plan', 'route'] as const;
const CHANGE = ['reason', 'if-version', 'dry-run', 'wait'] as const;
const BLOCKED = ['account', 'route'] as const;

/** The path of each action, its method, and its flags. */
const ACTIONS = {
  list: { path: 'v1/limits?limit=500', flags: ['account', 'provider', 'plan'] },
  get: { path: 'v1/limit', flags: TARGET },
  put: { path: 'v1/limit', method: 'PUT', flags: [...TARGET, ...CHANGE, 'for-ms', 'confirm'] },
  reset: { path: 'v1/limit', method: 'DELETE', flags: [...TARGET, ...CHANGE] },
  history: { path: 'v1/limits/history', flags: TARGET },
  export: { path: 'v1/limits/export', flags: TARGET },
  block: { path: 'v1/block', method: 'PUT', flags: [...BLOCKED, 'reason', 'for-ms', 'reset'] },
  unblock: { path: 'v1/block', method: 'DELETE', flags: [...BLOCKED, 'reason'] },
  blocked: { path: 'v1/block', flags: BLOCKED },
} as const satisfies Record<
  string,
  { readonly path: string; readonly method?: string; readonly flags: readonly (keyof typeof OPTIONS)[] }
>;
type Action = keyof typeof ACTIONS;

/** Longest wait for an answer, in milliseconds. */
const ANSWER_MS = 10_000;

/**
 * Runs `headgate limits`: one request to the Admin API, whose answer is printed as JSON.
 * @param args what follows `limits`
 * @returns exit code: 0, or 1 if the gateway refused or did not answer
 * @throws UsageError
 */
export async function runLimits(
  args: readonly string[],
  terminal: Terminal,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const { values, positionals } = parse(args);
  const [action, ...windows] = positionals;
  if (!isAction(action)) throw new UsageError(`limits needs an action (use ${alternatives(Object.keys(ACTIONS))})`);
  checkFlags(action, values, windows);
  const url = new URL(ACTIONS[action].path, adminUrl(values.admin ?? env.HEADGATE_ADMIN_URL));
  for (const name of TARGET) {
    const value = values[name];
    if (value === undefined) continue;
    if (action !== 'list') url.searchParams.set(name, value);
    else {
      url.searchParams.set('layer', name);
      url.searchParams.set('name', value);
    }
  }
  if (values['dry-run'] === true) url.searchParams.set('dryRun', 'true');
  if (values.wait === true) url.searchParams.set('wait', 'applied');
  if ((action === 'reset' || action === 'unblock') && values.reason !== undefined)
    url.searchParams.set('reason', values.reason);
  return await ask(url, requestOf(action, values, windows, tokenIn(values['token-file'], env)), terminal);
}

type Values = ReturnType<typeof parse>['values'];

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`limits: ${(error as Error).message.split(/\.\s/)[0]}`);
  }
}

function isAction(text: string | undefined): text is Action {
  return text !== undefined && Object.hasOwn(ACTIONS, text);
}

function checkFlags(action: Action, values: Values, windows: readonly string[]): void {
  if (action === 'put' && windows.length === 0)
    throw new UsageError('limits put needs windows such as 10/1m, or recommended');
  if (action !== 'put' && windows.length > 0)
    throw new UsageError(`unexpected ${JSON.stringify(windows[0])}: limits ${action} takes only flags`);
  const allowed: readonly string[] = [...ACTIONS[action].flags, 'admin', 'token-file'];
  const flag = Object.keys(values).find((name) => !allowed.includes(name));
  if (flag !== undefined) throw new UsageError(`--${flag} is not for limits ${action}`);
  if (ACTIONS[action].path === 'v1/block' && values.account === undefined)
    throw new UsageError(`limits ${action} needs --account`);
  if (action === 'block' && values['for-ms'] === undefined)
    throw new UsageError('limits block needs --for-ms, such as 3600000 for an hour');
  for (const name of ['for-ms', 'if-version'] as const)
    if (values[name] !== undefined && !/^\d{1,15}$/.test(values[name]))
      throw new UsageError(`--${name} must be a whole number`);
}

function adminUrl(given: string | undefined): string {
  if (given === undefined) throw new UsageError('limits needs --admin URL, or HEADGATE_ADMIN_URL');
  if (!/^https?:\/\//i.test(given) || !URL.canParse(given))
    throw new UsageError('--admin must be a URL with http:// or https://');
  return given.endsWith('/') ? given : `${given}/`;
}

/** Every user of the machine could read a token on the command line, so there is no such flag. */
function tokenIn(file: string | undefined, { HEADGATE_ADMIN_TOKEN: token }: NodeJS.ProcessEnv): string {
  if (file === undefined) {
    if (token) return token;
    throw new UsageError('limits needs --token-file FILE, or HEADGATE_ADMIN_TOKEN');
  }
  const content = readReferencedFile(file, process.cwd());
  if ('reason' in content) throw new UsageError(`--token-file: ${content.reason}`);
  return content.text.trim();
}

function requestOf(action: Action, values: Values, windows: readonly string[], token: string): RequestInit {
  const version = values['if-version'];
  const headers = {
    authorization: `Bearer ${token}`,
    ...(version === undefined ? {} : { 'if-match': `"${version}"` }),
  };
  const { method = 'GET' } = ACTIONS[action] as { readonly method?: string };
  if (method !== 'PUT') return { method, headers };
  const body = {
    ...(action === 'put' ? { windows: windows[0] === 'recommended' ? 'recommended' : windows } : {}),
    ...(values.reason === undefined ? {} : { reason: values.reason }),
    ...(values['for-ms'] === undefined ? {} : { forMs: Number(values['for-ms']) }),
    ...(values.confirm === true ? { confirm: true } : {}),
    ...(values.reset === true ? { reset: true } : {}),
  };
  return { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

async function ask(url: URL, request: RequestInit, terminal: Terminal): Promise<number> {
  const fail = (why: string): number => {
    terminal.error(`headgate: ${url.origin}: ${why}\n`);
    return 1;
  };
  try {
    // A redirect would take the change to another place.
    const answer = await fetch(url, { ...request, redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
    const value: unknown = await answer.json();
    const { detail, title, req_id: id } = objectOrEmpty(value);
    if (!answer.ok) return fail(`status ${answer.status}: ${detail ?? title} (req_id ${id})`);
    terminal.out(`${JSON.stringify(value, undefined, 2)}\n`);
    return 0;
  } catch (error) {
    const { message, cause } = error as Error;
    const { code, message: reason } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
    return fail(code ?? reason ?? message);
  }
}
