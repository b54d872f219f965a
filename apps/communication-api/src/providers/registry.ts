import type { Family, ProviderName } from '../domain/providers.ts';
import type { Provider } from './provider.ts';

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

  /** The installed providers of a family, or all of them. */
  supporting(family: Family | 'any'): readonly Provider[] {
    return [...this.#providers.values()].filter(({ supports }) => family === 'any' || supports.has(family));
  }
}
