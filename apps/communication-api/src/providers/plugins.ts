import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UserError } from '../domain/user-error.ts';
import { type Provider, ProviderError } from './provider.ts';
import { faultsOf } from './provider-faults.ts';

/**
 * Loads the providers that PROVIDERS names.
 * @param paths of modules that export `createProvider`; relative paths begin with a dot
 * @param folder that relative paths begin at. Default: the current folder
 * @throws UserError that names the module and its fault
 */
export async function loadPlugins(paths: readonly string[], folder = process.cwd()): Promise<readonly Provider[]> {
  const providers: Provider[] = [];
  for (const path of paths) {
    const provider = await loadPlugin(path, folder);
    if (providers.some(({ name }) => name === provider.name))
      throw wrong(path, `another plug-in is named ${JSON.stringify(provider.name)} as well`);
    providers.push(provider);
  }
  return providers;
}

async function loadPlugin(path: string, folder: string): Promise<Provider> {
  if (!isAbsolute(path) && !path.startsWith('.'))
    throw wrong(path, 'must be a path, such as ./my-provider.mjs or ./node_modules/my-provider/index.js');
  const exported = await load(path, pathToFileURL(resolve(folder, path)).href);
  const { createProvider } = exported;
  if (typeof createProvider !== 'function')
    throw wrong(
      path,
      `exports no function createProvider (it exports ${Object.keys(exported).join(', ') || 'nothing'})`,
    );
  const provider = await create(path, createProvider as (kit: object) => unknown);
  const faults = faultsOf(provider);
  if (faults.length > 0)
    throw wrong(path, `createProvider() returned a provider with faults:\n  ${faults.join('\n  ')}`);
  return provider as Provider;
}

async function load(path: string, url: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(url)) as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw wrong(path, `cannot be loaded: ${messageOf(cause)}`, cause);
  }
}

async function create(path: string, createProvider: (kit: object) => unknown): Promise<unknown> {
  try {
    return await createProvider({ ProviderError });
  } catch (cause) {
    throw wrong(path, `createProvider() failed: ${messageOf(cause)}`, cause);
  }
}

const wrong = (path: string, what: string, cause?: unknown): UserError =>
  new UserError(`PROVIDERS: ${path}: ${what}`, 2, { cause });

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
