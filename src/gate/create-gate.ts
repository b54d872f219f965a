import { createLogger } from '../base/logger.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { createMisuseLog } from '../core/misuse.ts';
import { MISSING_KEY_DETAIL } from '../http/idempotency-key.ts';
import type { HeaderFields } from '../http/rate-limit-fields.ts';
import type { Claim } from '../idempotency/claim.ts';
import { Cooldown } from '../limits/cooldown.ts';
import { cooldownSettings } from '../limits/cooldown-options.ts';
import { type Access, resolveAccess } from './access.ts';
import { GateEntries } from './entries.ts';
import { GateEmitter } from './events.ts';
import type { Gate, GateAnswer, GateEntry, Passage } from './gate.ts';
import { GateChecks } from './gate-checks.ts';
import { type AnswerProblem, IdempotencyStage } from './idempotency-stage.ts';
import {
  checkIdempotentRequest,
  type FingerprintedRequest,
  isKeyFault,
  withFingerprint,
} from './idempotent-request.ts';
import { type KnownRequest, LimitStage } from './limit-stage.ts';
import { checkGateOptions, type GateOptions } from './options.ts';
import { GatePassage } from './passage.ts';
import { callResolver, StageError } from './resolver.ts';
import { type RouteGateOptions, type RouteOptions, withRoute } from './route-options.ts';

const BYPASSED: HeaderFields = /* @__PURE__ */ Object.freeze({ 'idempotency-status': 'bypassed' });

/** A provider that answers 429 did not execute the request (I6). */
function isNotRejection(status: number): boolean {
  return status !== 429;
}

/**
 * Creates the gate that adapters mount.
 * @example
 * ```ts
 * const gate = createGate<IncomingMessage>({
 *   limiter,
 *   account: (request) => request.headers['x-account'] as string | undefined,
 *   route: (request) => `${request.method} /api/v1/emails`,
 * });
 * ```
 * @throws OptionError
 */
export function createGate<Request>(options: GateOptions<Request>): Gate<Request> {
  checkGateOptions(options);
  const misuse = createMisuseLog(options);
  return new StagedGate(options, misuse && new GateChecks(misuse));
}

/** Runs its stages in order: access, account, idempotency, cache, limits. */
class StagedGate<Request> implements Gate<Request> {
  readonly #options: RouteGateOptions<Request>;
  readonly #events: GateEmitter;
  readonly #idempotency: IdempotencyStage | undefined;
  readonly #checks: GateChecks | undefined;
  readonly #entries: GateEntries<Request>;
  readonly #limits: LimitStage<Request>;

  constructor(options: RouteGateOptions<Request>, checks: GateChecks | undefined) {
    this.#options = options;
    this.#checks = checks;
    this.#events = new GateEmitter(options.onEvent, createLogger(options.logger));
    const settings = cooldownSettings(options.cooldown);
    const cooldown = settings && new Cooldown(options.limiter, settings);
    this.#entries = new GateEntries(options, this.#events, checks, cooldown);
    this.#limits = new LimitStage(options, this.#entries, checks, cooldown);
    const { idempotency, isOutcome = isNotRejection, keepsField } = options;
    this.#idempotency = idempotency && new IdempotencyStage({ idempotency, isOutcome, keepsField });
  }

  get throws(): boolean {
    return this.#options.rejection === 'throw';
  }

  enter(request: Request, requestId?: string, outer?: Passage): MaybePromise<GateEntry> {
    const entry = this.#enter(request, requestId, outer);
    if (!(outer instanceof GatePassage)) return entry;
    return after(entry, (entered) => {
      this.#checks?.decidedBehind(outer, entered.decision, this.#options.limiter);
      if (entered.kind === 'proceed') return entered.behind(outer);
      if (entered.decision !== undefined) outer.hide();
      return entered;
    });
  }

  with(options: RouteOptions<Request>): Gate<Request> {
    const { limits, ...others } = withRoute(this.#options, options);
    checkGateOptions(others, limits !== undefined);
    return new StagedGate({ ...others, limits }, this.#checks);
  }

  #enter(
    request: Request,
    requestId: string | undefined,
    outer: Passage | undefined,
  ): MaybePromise<GateAnswer | GatePassage> {
    const { deny, allow } = this.#options;
    if (deny === undefined && allow === undefined) return this.#enterWithAccess('limited', request, requestId, outer);
    return this.#guard(request, requestId, () =>
      after(resolveAccess(this.#options, request), (access) =>
        this.#enterWithAccess(access, request, requestId, outer),
      ),
    );
  }

  /** The stages after access. Without idempotency these are cache and limits. */
  #enterWithAccess(
    access: Access,
    request: Request,
    requestId: string | undefined,
    outer: Passage | undefined,
  ): MaybePromise<GateAnswer | GatePassage> {
    if (typeof access === 'object')
      return this.#entries.refuse(
        'denied',
        403,
        'errors/resource_access_restricted',
        access.deniedFor,
        request,
        requestId,
      );
    const isAllowed = access === 'allowed';
    const { idempotent, account } = this.#options;
    const stage = this.#idempotency;
    // If the outer gate holds the claim on this key, a second claim would wait for it: the request would wait for
    // itself.
    if (stage === undefined || idempotent === undefined || outer?.isRecorded)
      return isAllowed ? this.#entries.skip(requestId, 'allowed') : this.#limits.enter(request, requestId);
    return this.#guard(request, requestId, () =>
      // Resolved before the claim: the account is part of the fingerprint (I2), and its resolver may fail.
      after(isAllowed ? undefined : callResolver('account', account, request), (resolved) => {
        const known = { account: resolved, isAllowed };
        const enter = () => this.#enterIdempotency(stage, idempotent, request, requestId, known);
        if (resolved !== undefined || isAllowed || this.#limits.passesWithoutAccount) return enter();
        // Nothing is read of a request that is refused, and no key is claimed for it.
        return after(this.#limits.routeOf(request), (route) =>
          route === undefined ? enter() : this.#limits.enterWithoutAccount(request, requestId),
        );
      }),
    );
  }

  #enterIdempotency(
    stage: IdempotencyStage,
    idempotent: NonNullable<GateOptions<Request>['idempotent']>,
    request: Request,
    requestId: string | undefined,
    known: KnownRequest,
  ): MaybePromise<GateAnswer | GatePassage> {
    const resolving = callResolver('idempotent', idempotent, request);
    if (resolving === undefined) return this.#enterWithoutKey(request, requestId, known);
    const id = this.#entries.idFor(requestId, true);
    return Promise.resolve(resolving)
      .then(async (resolved) => {
        if (resolved === undefined) return this.#enterWithoutKey(request, id, known);
        if (isKeyFault(resolved))
          return this.#entries.answer(422, 'errors/unprocessable_entity', resolved.detail, request, id);
        const account = known.isAllowed ? await callResolver('account', this.#options.account, request) : known.account;
        const keyed = await withFingerprint(checkIdempotentRequest(resolved), account);
        return this.#enterWithKey(stage, keyed, request, id, known);
      })
      .catch((error: unknown) => this.#entries.fail(request, id, error));
  }

  #enterWithoutKey(
    request: Request,
    requestId: string | undefined,
    known: KnownRequest,
  ): MaybePromise<GateAnswer | GatePassage> {
    if (this.#options.requireKey !== true) return this.#limits.enter(request, requestId, known);
    const id = this.#entries.idFor(requestId, true);
    return this.#entries.answer(400, 'errors/missing_idempotency_key', MISSING_KEY_DETAIL, request, id);
  }

  /** Claims the key, then runs the later stages. If one rejects the request, the key is released before the answer. */
  async #enterWithKey(
    stage: IdempotencyStage,
    keyed: FingerprintedRequest,
    request: Request,
    requestId: string,
    known: KnownRequest,
  ): Promise<GateAnswer | GatePassage> {
    const problem = this.#entries.problemFor(request, requestId);
    const opened = await stage.open(keyed).catch((error: unknown) => {
      throw new StageError('idempotent', error);
    });
    if (opened.kind === 'unavailable')
      return this.#entries.fail(request, requestId, new StageError('idempotency', opened.error));
    const outcome = opened.kind === 'replay' ? 'replayed' : opened.kind === 'refused' ? opened.reason : opened.kind;
    this.#events.emit({ type: 'idempotency', requestId, outcome });
    switch (opened.kind) {
      case 'replay':
        return { kind: 'answer', reply: stage.replay(opened.result, problem), replayed: true };
      case 'refused':
        return { kind: 'answer', reply: stage.refuse(opened, keyed, problem) };
      case 'bypassed': {
        const entry = await this.#limits.enter(request, requestId, known);
        return entry.kind === 'answer' ? entry : entry.withMarks(BYPASSED);
      }
      case 'claimed':
        return this.#enterClaimed(stage, opened.claim, keyed, request, requestId, known);
    }
  }

  async #enterClaimed(
    stage: IdempotencyStage,
    claim: Claim,
    keyed: FingerprintedRequest,
    request: Request,
    requestId: string,
    known: KnownRequest,
  ): Promise<GateAnswer | GatePassage> {
    let entry: GateAnswer | GatePassage | undefined;
    try {
      entry = await this.#limits.enter(request, requestId, known);
      const problem = this.#entries.problemFor(request, requestId);
      return await this.#dispatch(stage, claim, keyed, problem, entry, request, requestId);
    } catch (error) {
      await claim.abandon();
      // Nobody else ends a passage that no adapter got.
      if (entry?.kind === 'proceed') await entry.abandon();
      throw error;
    }
  }

  /**
   * Records the dispatch if the later stages let the request through, unless the handler does that, and releases the key
   * if they rejected it.
   */
  async #dispatch(
    stage: IdempotencyStage,
    claim: Claim,
    keyed: FingerprintedRequest,
    problem: AnswerProblem,
    entry: GateAnswer | GatePassage,
    request: Request,
    requestId: string,
  ): Promise<GateAnswer | GatePassage> {
    if (entry.kind === 'answer') {
      const instead = await stage.release(claim, problem);
      return instead === undefined ? entry : { kind: 'answer', reply: instead };
    }
    const dispatch = async (note?: unknown): Promise<GateAnswer | undefined> => {
      const dispatched = await claim.dispatch(note);
      switch (dispatched.kind) {
        case 'ok':
          return undefined;
        case 'settled':
          return { kind: 'answer', reply: stage.replay(dispatched.result, problem), replayed: true };
        case 'lost':
          return { kind: 'answer', reply: stage.refuse({ kind: 'refused', reason: 'lost' }, keyed, problem) };
        case 'unavailable':
          return this.#entries.fail(request, requestId, new StageError('idempotency', dispatched.error));
      }
    };
    const isExplicit = keyed.dispatch === 'explicit';
    const instead = isExplicit ? undefined : await dispatch();
    if (instead !== undefined) {
      await entry.abandon();
      return instead;
    }
    return entry.withClaim(
      stage.recording(claim, keyed, problem),
      () => stage.release(claim, problem),
      (error) => this.#entries.fail(request, requestId, new StageError('idempotency', error)).reply,
      isExplicit ? async (note) => (await dispatch(note))?.reply : undefined,
      claim.transaction,
    );
  }

  /** Runs stages. Their errors become the answer. */
  #guard(
    request: Request,
    requestId: string | undefined,
    run: () => MaybePromise<GateAnswer | GatePassage>,
  ): MaybePromise<GateAnswer | GatePassage> {
    try {
      const entry = run();
      return isPromise(entry) ? entry.catch((error: unknown) => this.#entries.fail(request, requestId, error)) : entry;
    } catch (error) {
      return this.#entries.fail(request, requestId, error);
    }
  }
}
