import { setTimeout as pause } from 'node:timers/promises';
import { isLoopback } from '../domain/application-url.ts';
import { type CallbackResult, callbackUrl } from '../domain/callback-url.ts';
import { AUTO_PROXY_PROVIDERS } from '../domain/providers.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { EnteredFault, WizardData, WizardSession } from '../links/wizard-sessions.ts';
import type { AwayStep, LinkAnswer, LinkContext, LinkStep } from '../providers/link-flow.ts';
import type { LinkableProvider } from '../providers/registry.ts';
import type { Rooms } from '../rooms.ts';
import { AccountLinker, proxiesOf } from './account-linker.ts';
import { CallbackStates, type WayBack } from './callback-states.ts';
import { asksForSecret, COUNTRY_FIELD, checkProxy, checkValues, countryOf, type Entered } from './entered-values.ts';
import type { SessionVisit, Visit } from './visit.ts';

/** How long a provider may take to answer one page. */
const PROVIDER_TIMEOUT_MS = 60_000;
/** How often a request checks whether another request with the same callback is done. */
const SAME_CALLBACK_POLL_MS = 100;

/** The page of a session, and its data. */
export interface Position {
  readonly step: WizardSession['step'];
  readonly data: WizardData;
}

/** The page of a provider's flow on which a session is. */
export interface CurrentStep {
  readonly provider: LinkableProvider;
  readonly step: LinkStep;
  readonly context: LinkContext;
}

/** The result of a submitted page. */
export type Submitted =
  /** The session is on a page of the wizard, which may be the same one. */
  | { readonly kind: 'stay' }
  /** The user continues on the provider's own site. */
  | { readonly kind: 'away'; readonly url: string }
  /** The account is linked, or was linked by the same session a moment before. */
  | { readonly kind: 'linked'; readonly accountId: string }
  /** The user returns to the application with an error. */
  | { readonly kind: 'critical'; readonly result: CallbackResult };

/** The result of a callback. `stale`: its state is not the newest, so nothing changed. */
export type Arrived = Exclude<Submitted, { kind: 'away' }> | { readonly kind: 'stale' };

/** The values that were entered before the provider's pages began. They stay if the pages begin again. */
type Kept = Pick<WizardData, 'language' | 'proxy' | 'country' | 'values'>;

/** Leads a session through the pages of a link. It changes rows, and knows nothing of HTTP. */
export class WizardFlow {
  readonly #linker: AccountLinker;
  readonly #states: CallbackStates;

  constructor(private readonly rooms: Rooms) {
    this.#linker = new AccountLinker(rooms);
    this.#states = new CallbackStates(rooms.envelope);
  }

  /** The first page: the list of providers, or the provider's own page if there is only one. */
  async start(visit: Visit, { language }: WizardData): Promise<Position> {
    const [only] = visit.providers;
    if (only === undefined)
      throw new ServiceError(403, 'errors/feature_not_subscribed', 'The providers of this link are not available.');
    if (visit.providers.length > 1) return { step: 'choose', data: { language } };
    return this.begin(visit, only, { language });
  }

  /** The first page of a provider, or the page that says that the provider cannot make it. */
  async begin(visit: Visit, provider: LinkableProvider, kept: Kept): Promise<Position> {
    const { language, proxy, country, values } = kept;
    const begun: WizardData = { language, proxy, country, values, provider: provider.name };
    const data: WizardData = { ...begun, callbackState: this.#states.create(visit) };
    const context = await this.#context(visit, provider, data);
    try {
      return { step: 'flow', data: { ...data, flow: await provider.link.begin(context) } };
    } catch (error) {
      this.#noteFailure(provider, error as Error);
      return { step: 'flow', data: { ...begun, isUnreachable: true } };
    }
  }

  /** Goes back to the first page, without the entered values. */
  async restart(visit: SessionVisit): Promise<void> {
    const { step, data } = await this.start(visit, visit.session.data);
    await this.rooms.wizardSessions.save(visit.session.row.id, step, data);
  }

  /** @throws ServiceError 403 if the provider is not available any more */
  providerOf(visit: Visit, { provider }: WizardData): LinkableProvider {
    const found = visit.providers.find(({ name }) => name === provider);
    if (found === undefined)
      throw new ServiceError(403, 'errors/feature_not_subscribed', 'The provider of this link is not available.');
    return found;
  }

  async stepOf(visit: Visit, data: WizardData): Promise<CurrentStep> {
    const provider = this.providerOf(visit, data);
    const context = await this.#context(visit, provider, data);
    return { provider, step: checkStep(provider.link.stepOf(data.flow, context)), context };
  }

  /** Whether the first page asks for a proxy, and for a country. */
  questionsOf({ config }: Visit, { name }: LinkableProvider, { pagesDone = 0 }: WizardData) {
    const { allow_user_proxy_override: proxy, allow_user_country_override: country } = config.global ?? {};
    const isAutomatic = (AUTO_PROXY_PROVIDERS as readonly string[]).includes(name);
    return {
      proxy: pagesDone === 0 && proxy === true,
      country: pagesDone === 0 && country === true && isAutomatic && config[name]?.custom_proxy === undefined,
    };
  }

  /** Takes the values that were entered on the current page of a provider. */
  async submit(visit: SessionVisit, current: CurrentStep, entered: Entered): Promise<Submitted> {
    const { wizardSessions } = this.rooms;
    const { row, data } = visit.session;
    const { provider, step } = current;
    const questions = this.questionsOf(visit, provider, data);
    const checked = checkValues(step, entered);
    const proxy = questions.proxy ? checkProxy(entered, data.proxy) : { proxy: data.proxy, faults: [], shown: {} };
    const country = questions.country ? countryOf(entered) : data.country;
    const remembered: WizardData = {
      ...data,
      proxy: proxy.proxy,
      country,
      values: { ...checked.shown, ...proxy.shown, ...(country === undefined ? {} : { [COUNTRY_FIELD]: country }) },
      faults: undefined,
    };
    const faults = [...checked.faults, ...proxy.faults];
    if (faults.length > 0) return this.#stay(visit, remembered, faults);
    if (step.kind === 'away') return this.#leave(visit, provider, remembered);
    const guarded = asksForSecret(step);
    // The page says how long the pause is.
    if (guarded && !(await wizardSessions.takeAttempt(row.id))) return this.#stay(visit, remembered, []);
    const context = await this.#context(visit, provider, remembered);
    const answer = await provider.link
      .submit(data.flow, checked.values, context)
      .catch((error: Error) => this.#noteFailure(provider, error));
    const hasFaults = answer?.kind === 'invalid' || (answer?.kind === 'next' && (answer.faults ?? []).length > 0);
    if (guarded) await (hasFaults ? wizardSessions.failAttempt(row.id) : wizardSessions.returnAttempt(row.id));
    if (answer === undefined) return this.#stay(visit, remembered, [{ message: 'failed' }]);
    return this.#take(visit, provider, remembered, answer);
  }

  /** The link that a callback belongs to. Undefined if the service did not make its state. */
  wayBackOf(state: string): WayBack | undefined {
    return this.#states.read(state);
  }

  /**
   * Takes the query with which the provider's own site sent the user back. Only the newest state of the session counts,
   * and only once. If the same callback arrives twice, as after a double click, both requests get the same result.
   */
  async arrive(visit: SessionVisit, state: string, query: string): Promise<Arrived> {
    const taken = await this.#takeState(visit, state);
    if (taken === undefined) return { kind: 'stale' };
    if (taken === 'by another request') return this.#linker.closedMeanwhile(visit);
    const provider = this.providerOf(visit, taken);
    const context = await this.#context(visit, provider, { ...taken, callbackState: state });
    const wasDenied = new URLSearchParams(query).get('error') === 'access_denied';
    const answer = await provider.link.submit(taken.flow, { query }, context).catch((error: Error) => {
      // A flow need not know this error: nothing went wrong.
      if (!wasDenied) this.#noteFailure(provider, error);
    });
    if (answer === undefined) return this.#stay(visit, taken, [{ message: wasDenied ? 'denied' : 'failed' }]);
    return this.#take(visit, provider, taken, answer);
  }

  /** The data of the session without the state, which is now used. Undefined: the state is not valid. */
  async #takeState(visit: SessionVisit, state: string): Promise<WizardData | 'by another request' | undefined> {
    const { wizardSessions, clock } = this.rooms;
    const deadline = clock() + PROVIDER_TIMEOUT_MS;
    for (let waited = false; ; waited = true) {
      const row = await wizardSessions.resolve(visit.link.id, visit.session.cookie);
      const { callbackState, takenState, ...data } = row === undefined ? {} : wizardSessions.dataOf(row);
      if (row?.step === 'flow' && callbackState === state) {
        const { step } = await this.stepOf(visit, { ...data, callbackState });
        if (step.kind !== 'away') return undefined;
        if (await wizardSessions.replace(row, 'flow', { ...data, takenState: state })) return data;
      } else if (takenState !== state || clock() > deadline) {
        return waited || row?.step === 'linked' ? 'by another request' : undefined;
      } else await pause(SAME_CALLBACK_POLL_MS);
    }
  }

  /** Leads to the provider's own site. If its state was returned before, the provider's pages begin again. */
  async #leave(visit: SessionVisit, provider: LinkableProvider, data: WizardData): Promise<Submitted> {
    const next: Position =
      data.callbackState === undefined ? await this.begin(visit, provider, data) : { step: 'flow', data };
    const saved = await this.rooms.wizardSessions.replace(visit.session.row, next.step, next.data);
    if (!saved || next.data.isUnreachable === true) return { kind: 'stay' };
    const { step } = await this.stepOf(visit, next.data);
    return step.kind === 'away' ? { kind: 'away', url: step.url } : { kind: 'stay' };
  }

  async #take(
    visit: SessionVisit,
    provider: LinkableProvider,
    data: WizardData,
    answer: LinkAnswer<unknown>,
  ): Promise<Exclude<Submitted, { kind: 'away' }>> {
    if (answer.kind === 'invalid') return this.#stay(visit, data, answer.faults);
    if (answer.kind === 'next') {
      const { values: _, faults: __, ...rest } = data;
      await this.rooms.wizardSessions.save(visit.session.row.id, 'flow', {
        ...rest,
        callbackState: data.callbackState ?? this.#states.create(visit),
        flow: answer.state,
        faults: answer.faults,
        pagesDone: (data.pagesDone ?? 0) + 1,
      });
      return { kind: 'stay' };
    }
    if (answer.kind === 'refused') {
      await this.restart(visit);
      return { kind: 'critical', result: errorResult(answer.type, answer.title, answer.detail) };
    }
    if (answer.kind === 'provider') {
      const { language, proxy, country } = data;
      const other = this.providerOf(visit, { provider: answer.name });
      const next = await this.begin(visit, other, { language, proxy, country });
      await this.rooms.wizardSessions.save(visit.session.row.id, next.step, next.data);
      return { kind: 'stay' };
    }
    const linked = await this.#linker.link(visit, provider, answer.account, data);
    if (linked.kind !== 'exists') return linked;
    await this.restart(visit);
    return { kind: 'critical', result: errorResult('api/already_exists', 'Account already linked', linked.accountId) };
  }

  async #stay(visit: SessionVisit, data: WizardData, faults: readonly EnteredFault[]): Promise<{ kind: 'stay' }> {
    await this.rooms.wizardSessions.save(visit.session.row.id, 'flow', { ...data, faults });
    return { kind: 'stay' };
  }

  async #context(visit: Visit, provider: LinkableProvider, data: WizardData): Promise<LinkContext> {
    const account = await this.#linker.accountToReconnect(visit);
    const before = account && this.rooms.accounts.secretOf(account);
    // The servers see the same address now and later.
    const { proxy } = proxiesOf(visit, provider, data, before);
    return {
      loginHint: visit.config.global?.login_hint,
      reconnect: account && {
        providerUserId: account.provider_user_id,
        name: account.name,
        credentials: before?.credentials,
      },
      offered: visit.providers.map(({ name }) => name),
      proxy,
      net: this.rooms.egress.through(proxy),
      callbackUrl: `${this.rooms.config.AUTH_URL}/auth/callback`,
      callbackState: data.callbackState ?? '',
      settings: { ...visit.config[provider.name] },
      now: this.rooms.clock(),
      signal: AbortSignal.timeout(PROVIDER_TIMEOUT_MS),
    };
  }

  /** The message of an error may contain values that the user entered, so it is not logged. */
  #noteFailure({ name }: LinkableProvider, error: Error): undefined {
    const { code } = error as { readonly code?: unknown };
    this.rooms.log.warn({ provider: name, error: error.name, code }, 'a provider failed in the wizard');
    return undefined;
  }
}

/** @throws Error if a page leads to an address that would send secrets in clear text */
function checkStep(step: LinkStep): LinkStep {
  if (step.kind === 'away' && !isSafe(step)) throw new Error('An away step must lead to https, or to this machine.');
  return step;
}

function isSafe({ url }: AwayStep): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

export const errorResult = (type: string, title: string, detail: string): CallbackResult => ({
  error_type: type,
  error_title: title,
  error_detail: detail,
});

/** The address of the application to which a user returns whose account is linked. */
export const successUrl = ({ link }: Visit, accountId: string, provider: string): string =>
  callbackUrl(link.redirect_uri, { account_id: accountId, provider }, link.client_state);

export const errorUrl = ({ link }: Visit, result: CallbackResult): string =>
  callbackUrl(link.redirect_uri, result, link.client_state);
