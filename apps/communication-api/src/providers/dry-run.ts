import type { LinkContext } from './link-flow.ts';
import type { Provider } from './provider.ts';
import { faultsOf, stepFaultsOf } from './provider-faults.ts';

/**
 * The faults of a provider, as far as they can be found without an account: its shape, and the first page of its way to
 * an account. Making that page may ask the provider's servers.
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
    return [`link: the first page cannot be made: ${textOf(error)}`];
  }
}

/** Libraries throw errors that say little, with the reason as the cause. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const text = error.message.replace(/\.$/, '');
  return error.cause instanceof Error ? `${text}: ${textOf(error.cause)}` : text;
}
