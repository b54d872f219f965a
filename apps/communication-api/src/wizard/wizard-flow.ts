import type { AccountSecret } from '../accounts/accounts.ts';
import { type CallbackResult, callbackUrl } from '../domain/callback-url.ts';
import { AUTO_PROXY_PROVIDERS } from '../domain/providers.ts';
import type { AutoProxy, CustomProxy } from '../domain/proxy.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { EnteredFault, WizardData, WizardSession } from '../links/wizard-sessions.ts';
import type { IdentifiedAccount, LinkContext, LinkStep } from '../providers/link-flow.ts';
import type { LinkableProvider } from '../providers/registry.ts';
import type { Rooms } from '../rooms.ts';
import { asksForSecret, COUNTRY_FIELD, checkProxy, checkValues, countryOf, type Entered } from './entered-values.ts';
import type { OpenSession, Visit } from './visit.ts';

/** How long a provider may take to answer one page. */
const PROVIDER_TIMEOUT_MS = 60_000;

/** A visit with a session. */
export type SessionVisit = Visit & { readonly session: OpenSession };

/** The page of a session, and what it needs. */
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

/** What a submitted page led to. */
export type Submitted =
  /** The session is on a page of the wizard, which may be the same one. */
  | { readonly kind: 'stay' }
  /** The account is linked, or was linked by the same session a moment before. */
  | { readonly kind: 'linked'; readonly accountId: string }
  /** The user returns to the application with an error. */
  | { readonly kind: 'critical'; readonly result: CallbackResult };

/** Leads a session through the pages of a link. It changes rows, and knows nothing of HTTP. */
export class WizardFlow {
  constructor(private readonly rooms: Rooms) {}

  /** The first page: the list of providers, or the provider's own page if there is only one. */
  async start(visit: Visit, { language }: WizardData): Promise<Position> {
    const [only] = visit.providers;
    if (only === undefined)
      throw new ServiceError(403, 'errors/feature_not_subscribed', 'The providers of this link are not available.');
    if (visit.providers.length > 1) return { step: 'choose', data: { language } };
    return this.begin(visit, only, { language });
  }

  /** The first page of a provider. */
  async begin(visit: Visit, provider: LinkableProvider, { language }: WizardData): Promise<Position> {
    const data: WizardData = { language, provider: provider.name };
    const flow = await provider.link.begin(await this.#context(visit, provider, data));
    return { step: 'flow', data: { ...data, flow } };
  }

  /** Goes back to the first page, without what was entered. */
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
    return { provider, step: provider.link.stepOf(data.flow, context), context };
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

  /** Takes what was entered on the current page of a provider. */
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
    };
    const stay = async (faults: readonly EnteredFault[]): Promise<Submitted> => {
      await wizardSessions.save(row.id, 'flow', { ...remembered, faults });
      return { kind: 'stay' };
    };
    const faults = [...checked.faults, ...proxy.faults];
    if (faults.length > 0) return stay(faults);
    const guarded = asksForSecret(step);
    // The page says how long the pause is.
    if (guarded && !(await wizardSessions.takeAttempt(row.id))) return stay([]);
    const context = await this.#context(visit, provider, remembered);
    const answer = await provider.link
      .submit(data.flow, checked.values, context)
      .catch((error: Error) => this.#noteFailure(provider, error));
    if (guarded)
      await (answer?.kind === 'invalid' ? wizardSessions.failAttempt(row.id) : wizardSessions.returnAttempt(row.id));
    if (answer === undefined) return stay([{ message: 'failed' }]);
    if (answer.kind === 'invalid') return stay(answer.faults);
    if (answer.kind === 'next') {
      const { values: _, faults: __, ...rest } = remembered;
      const pagesDone = (data.pagesDone ?? 0) + 1;
      await wizardSessions.save(row.id, 'flow', { ...rest, flow: answer.state, pagesDone });
      return { kind: 'stay' };
    }
    if (answer.kind === 'refused') {
      await this.restart(visit);
      return { kind: 'critical', result: errorResult(answer.type, answer.title, answer.detail) };
    }
    return this.#link(visit, provider, answer.account, remembered);
  }

  async #link(
    visit: SessionVisit,
    provider: LinkableProvider,
    account: IdentifiedAccount,
    data: WizardData,
  ): Promise<Submitted> {
    const { links, wizardSessions } = this.rooms;
    const { link, session } = visit;
    const expected = await this.#accountToReconnect(visit);
    if (expected !== undefined && expected.provider_user_id !== account.providerUserId) {
      const { language, provider: name } = data;
      await wizardSessions.save(session.row.id, 'wrong-account', {
        language,
        provider: name,
        otherAccount: account.name,
      });
      return { kind: 'stay' };
    }
    const before = expected === undefined ? undefined : this.rooms.accounts.secretOf(expected);
    const outcome = await links.complete(link.application_id, {
      link,
      sessionId: session.row.id,
      account: {
        provider: provider.name,
        providerUserId: account.providerUserId,
        name: account.name,
        initialSyncMs: account.initialSyncMs,
        secret: { credentials: account.credentials, ...proxiesOf(visit, provider, data, before) },
      },
    });
    if (outcome.kind === 'linked') return outcome;
    if (outcome.kind === 'exists') {
      await this.restart(visit);
      const result = errorResult('api/already_exists', 'Account already linked', outcome.accountId);
      return { kind: 'critical', result };
    }
    if (outcome.kind === 'removed') throw gone();
    return this.#closedMeanwhile(visit);
  }

  /** The same form may have been submitted twice: then the first submission has linked the account. */
  async #closedMeanwhile({ token, link, session }: SessionVisit): Promise<Submitted> {
    const [now, row] = await Promise.all([
      this.rooms.links.resolve(token),
      this.rooms.wizardSessions.resolve(link.id, session.cookie),
    ]);
    const accountId = now?.used_account_id ?? null;
    if (row?.step === 'linked' && accountId !== null) return { kind: 'linked', accountId };
    // The page of the link says why.
    return { kind: 'stay' };
  }

  async #accountToReconnect({ link }: Visit) {
    if (link.account_id === null) return undefined;
    const account = await this.rooms.accounts.find(link.application_id, link.account_id);
    if (account === undefined) throw gone();
    return account;
  }

  async #context(visit: Visit, provider: LinkableProvider, data: WizardData): Promise<LinkContext> {
    const account = await this.#accountToReconnect(visit);
    const settings = visit.config[provider.name] ?? {};
    const proxy = data.proxy ?? settings.custom_proxy;
    return {
      loginHint: visit.config.global?.login_hint,
      reconnect: account && { providerUserId: account.provider_user_id, name: account.name },
      proxy,
      net: this.rooms.egress.through(proxy),
      callbackUrl: `${this.rooms.config.AUTH_URL}/auth/callback`,
      callbackState: data.callbackState ?? '',
      settings: { ...settings },
      now: this.rooms.clock(),
      signal: AbortSignal.timeout(PROVIDER_TIMEOUT_MS),
    };
  }

  /** The message of an error may have what the user entered, so it is not logged. */
  #noteFailure({ name }: LinkableProvider, error: Error): undefined {
    const { code } = error as { readonly code?: unknown };
    this.rooms.log.warn({ provider: name, error: error.name, code }, 'a provider failed in the wizard');
    return undefined;
  }
}

const gone = (): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', 'The account to reconnect was removed.');

export const errorResult = (type: string, title: string, detail: string): CallbackResult => ({
  error_type: type,
  error_title: title,
  error_detail: detail,
});

/** The user's own proxy comes first, then the one of the link, then the one that a reconnected account has. */
function proxiesOf(
  { config }: Visit,
  { name }: LinkableProvider,
  data: WizardData,
  before: AccountSecret | undefined,
): { readonly proxy?: CustomProxy; readonly autoProxy?: AutoProxy } {
  const settings = config[name];
  const proxy = data.proxy ?? settings?.custom_proxy;
  if (proxy !== undefined) return { proxy };
  const autoProxy = data.country === undefined ? settings?.auto_proxy_config : { country: data.country };
  if (autoProxy !== undefined) return { autoProxy };
  return {
    ...(before?.proxy === undefined ? {} : { proxy: before.proxy }),
    ...(before?.autoProxy === undefined ? {} : { autoProxy: before.autoProxy }),
  };
}

/** The address of the application to which a user returns whose account is linked. */
export const successUrl = ({ link }: Visit, accountId: string, provider: string): string =>
  callbackUrl(link.redirect_uri, { account_id: accountId, provider }, link.client_state);

export const errorUrl = ({ link }: Visit, result: CallbackResult): string =>
  callbackUrl(link.redirect_uri, result, link.client_state);
