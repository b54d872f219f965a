import type { LimitSet } from 'headgate/limits';
import { recommendedLimits } from 'headgate/recommended';
import type { Logger } from 'pino';
import { type EffectiveLimit, effectiveLimits, type LimitLayer, type LimitSource } from '../domain/effective-limits.ts';
import { METHODS } from '../domain/methods.ts';
import type { LimitOverrides, Override } from './overrides.ts';
import { canonicalWindows } from './windows.ts';

export interface LimitBookOptions {
  /** How often to look for changes of other processes. Undefined: never, since this process is the only one. */
  readonly pollMs?: number | undefined;
  readonly log: Pick<Logger, 'error' | 'info'>;
}

/** The limits of a provider or an account, and the object that headgate knows them by. */
interface Entry {
  readonly limits: readonly EffectiveLimit[];
  readonly set: LimitSet;
  /** Entries with the same text contain the same limits. */
  readonly text: string;
}

/** The adjusted limits of an application. It never changes: a change makes a new one. */
interface Snapshot {
  readonly providers: ReadonlyMap<string, Entry>;
  readonly accounts: ReadonlyMap<string, Entry>;
}

type Layers = Parameters<typeof effectiveLimits>[0];

/** The application and the provider of an account in one text, as {@link LimitBook.of} expects them. */
export const limitProvider = (applicationId: string, provider: string): string => `${applicationId}/${provider}`;

/**
 * The limits of every account: limits of the account override limits of its application, which override the recommended
 * limits. All adjustments are in memory, so that a request does not wait for the database.
 */
export class LimitBook {
  #snapshots = new Map<string, Snapshot>();
  #versions: ReadonlyMap<string, number> | undefined;
  /** Reads run one after the other: the last read to begin read the newest rows. */
  #reading: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isFailing = false;

  constructor(
    private readonly overrides: LimitOverrides,
    private readonly options: LimitBookOptions,
  ) {}

  /** Reads all adjustments. Until then, the book refuses to answer, since the recommended limits may be too high. */
  async start(): Promise<void> {
    await this.#inTurn(() => this.#readChanges());
    this.#schedule();
  }

  /** Ends the search for changes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#reading;
  }

  /**
   * The limits of an account, for headgate. The object stays the same until the limits change; headgate keeps the
   * counters of windows whose length does not change.
   * @param provider made by {@link limitProvider}
   */
  of(account: string, provider: string): LimitSet {
    const slash = provider.indexOf('/');
    return this.#entry(provider.slice(0, slash), provider.slice(slash + 1), account).set;
  }

  /** The limits of an account, or of all accounts of a provider, with the layers that they come from. */
  list(applicationId: string, provider: string, accountId?: string): readonly EffectiveLimit[] {
    return this.#entry(applicationId, provider, accountId).limits;
  }

  /** The recommended limits of a provider. */
  recommended(provider: string): readonly EffectiveLimit[] {
    return recommendedEntry(provider).limits;
  }

  /** Reads the adjustments of an application again, after this process changed them. */
  async reload(applicationId: string): Promise<void> {
    await this.#inTurn(() => this.#read([applicationId]));
  }

  #entry(applicationId: string, provider: string, accountId: string | undefined): Entry {
    if (this.#versions === undefined) throw new Error('The limits are not loaded yet.');
    const snapshot = this.#snapshots.get(applicationId);
    return (
      (accountId === undefined ? undefined : snapshot?.accounts.get(accountId)) ??
      snapshot?.providers.get(provider) ??
      recommendedEntry(provider)
    );
  }

  #schedule(): void {
    const { pollMs } = this.options;
    if (pollMs === undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#poll(), pollMs).unref();
  }

  async #poll(): Promise<void> {
    const { log } = this.options;
    try {
      await this.#inTurn(() => this.#readChanges());
      if (this.#isFailing) log.info('changes of limits are read again');
      this.#isFailing = false;
    } catch (error) {
      // Once per outage. The old limits still apply.
      if (!this.#isFailing) log.error({ err: error }, 'changes of limits cannot be read');
      this.#isFailing = true;
    }
    this.#schedule();
  }

  async #inTurn(read: () => Promise<void>): Promise<void> {
    const result = this.#reading.then(read);
    this.#reading = result.catch(() => undefined);
    await result;
  }

  /**
   * Compares every version, instead of asking for those after the last one that was seen: transactions of several
   * applications are not committed in the order in which they began.
   */
  async #readChanges(): Promise<void> {
    const known = this.#versions ?? new Map();
    const versions = await this.overrides.versions();
    const ids = new Set([...known.keys(), ...versions.keys()]);
    await this.#read([...ids].filter((id) => known.get(id) !== versions.get(id)));
    // The rows were read after these versions. If they are newer, they are read once more next time.
    this.#versions = versions;
  }

  async #read(applicationIds: readonly string[]): Promise<void> {
    const overrides = groupBy(await this.overrides.read(applicationIds), ({ applicationId }) => applicationId);
    for (const id of applicationIds) {
      const own = overrides.get(id);
      if (own === undefined) this.#snapshots.delete(id);
      else this.#snapshots.set(id, snapshotOf(own, this.#snapshots.get(id)));
    }
  }
}

function snapshotOf(overrides: readonly Override[], previous: Snapshot | undefined): Snapshot {
  const ofProviders = groupBy(
    overrides.filter(({ accountId }) => accountId === undefined),
    ({ provider }) => provider,
  );
  const ofAccounts = groupBy(
    overrides.filter(({ accountId }) => accountId !== undefined),
    ({ accountId = '' }) => accountId,
  );
  const layersOf = (provider: string): Layers => [
    { source: 'recommended', limits: recommendedLayer(provider) },
    { source: 'application', limits: layerOf(ofProviders.get(provider)) },
  ];
  return {
    providers: new Map(
      [...ofProviders.keys()].map((provider) => [
        provider,
        entryOf(layersOf(provider), previous?.providers.get(provider)),
      ]),
    ),
    accounts: new Map(
      [...ofAccounts].map(([accountId, own]) => {
        const layers: Layers = [...layersOf(own[0]?.provider ?? ''), { source: 'account', limits: layerOf(own) }];
        return [accountId, entryOf(layers, previous?.accounts.get(accountId))];
      }),
    ),
  };
}

const layerOf = (overrides: readonly Override[] = []): LimitLayer =>
  new Map(overrides.map(({ route, windows }) => [route, windows]));

/** @param previous is returned if its limits are the same, so that its object stays the same */
function entryOf(layers: Layers, previous?: Entry): Entry {
  const limits = effectiveLimits(layers, METHODS);
  const text = JSON.stringify(limits);
  return text === previous?.text ? previous : { limits, text, set: setOf(limits) };
}

function setOf(limits: readonly EffectiveLimit[]): LimitSet {
  // An operator may remove every limit. headgate wants to be told so.
  if (limits.every(({ windows }) => windows.length === 0)) return { unlimited: true };
  const routes: Record<string, readonly string[]> = {};
  let allMethods: readonly string[] = [];
  for (const { route, windows } of limits) {
    if (route === null) allMethods = windows;
    else routes[route] = windows;
  }
  return { allMethods, routes };
}

function recommendedLayer(provider: string): LimitLayer {
  const { allMethods = [], routes = {} } = (recommendedLimits as Readonly<Record<string, LimitSet>>)[provider] ?? {};
  const windows = 'windows' in allMethods ? allMethods.windows : allMethods;
  return new Map<string | null, readonly string[]>([
    [null, canonicalWindows(windows)],
    ...Object.entries(routes).map(([route, input]) => [route, canonicalWindows(input)] as const),
  ]);
}

const RECOMMENDED: ReadonlyMap<string, Entry> = new Map(
  Object.keys(recommendedLimits).map((provider) => {
    const source: LimitSource = 'recommended';
    return [provider, entryOf([{ source, limits: recommendedLayer(provider) }])];
  }),
);

function recommendedEntry(provider: string): Entry {
  const entry = RECOMMENDED.get(provider);
  if (entry === undefined) throw new Error(`There are no limits for the provider "${provider}".`);
  return entry;
}

function groupBy<Value>(values: readonly Value[], keyOf: (value: Value) => string): Map<string, Value[]> {
  const groups = new Map<string, Value[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group === undefined) groups.set(keyOf(value), [value]);
    else group.push(value);
  }
  return groups;
}
