import type { Environment } from '../domain/key-token.ts';
import type { ProviderName } from '../domain/providers.ts';
import type { LinkFlow } from './link-flow.ts';
import type { Provider } from './provider.ts';

/** A provider with a way for users to link an account. */
export type LinkableProvider = Provider & { readonly link: LinkFlow };

/** The providers that are installed. */
export class Registry {
  readonly #providers: ReadonlyMap<string, Provider>;

  constructor(providers: readonly Provider[]) {
    this.#providers = new Map(providers.map((provider) => [provider.name, provider]));
  }

  get names(): readonly ProviderName[] {
    return [...this.#providers.values()].map(({ name }) => name);
  }

  find(name: string): Provider | undefined {
    return this.#providers.get(name);
  }

  /** The providers whose accounts users of an application can link. The mock is for development only. */
  linkable(environment: Environment): readonly LinkableProvider[] {
    return [...this.#providers.values()].filter(
      (provider): provider is LinkableProvider =>
        provider.link !== undefined && (environment === 'development' || provider.name !== 'mock'),
    );
  }
}
