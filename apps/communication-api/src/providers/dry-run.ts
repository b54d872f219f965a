import type { LinkContext } from './link-flow.ts';
import type { Provider } from './provider.ts';
import { faultsOf, stepFaultsOf } from './provider-faults.ts';

/**
 * What is wrong with a provider, as far as it can be found out without an account: its shape, and the first page of its
 * way to an account. Making that page may ask the provider's servers.
 */
export async function dryRun(provider: Provider, context: LinkContext): Promise<readonly string[]> {
  const faults = faultsOf(provider);
  if (faults.length > 0 || provider.link === undefined) return faults;
  try {
    const state = await provider.link.begin(context);
    if (state === undefined) return ['link.begin: must return a state, such as {}'];
    const stored: unknown = JSON.parse(JSON.stringify(state));
    return stepFaultsOf(provider.link.stepOf(stored, context));
  } catch (error) {
    return [`link: the first page cannot be made: ${error instanceof Error ? error.message : String(error)}`];
  }
}
