import { OptionError, ReceiptError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import { countersOf } from '../core/counters.ts';
import { Decision, type DecisionPart, FITS, ISSUER } from '../core/decision.ts';
import type { Limit, LimitName } from '../core/limit.ts';
import { createWindowSet, type WindowSet } from '../core/window-set.ts';
import { base64url, digestText, fromBase64 } from '../http/platform.ts';
import { decorateLimiter } from './decorate-limiter.ts';
import { JointDecision, OF_ACCOUNT } from './joint-decision.ts';
import { partsOf } from './limiter-parts.ts';
import type { Limiter, ReadReceipt, Receipts } from './ports.ts';

/** How receipts of decisions are signed. */
export interface ReceiptOptions {
  /**
   * At least 32 characters that no client knows. Every process that reads the receipts needs it. Of several, the first
   * one signs and all are accepted, so that a secret can be replaced.
   */
  readonly secret: string | readonly string[];
}

/**
 * Creates what signs receipts with HMAC-SHA256, in URL-safe characters. It is apart from `createLimiter`, so that only
 * those who use it bundle it.
 * @throws OptionError
 */
export function createReceipts(options: ReceiptOptions): Receipts {
  return new SignedReceipts(options);
}

/** The name of a window (`r` or `a` for its limit, and its duration), and when the charged instance started. */
type ChargedWindow = readonly [name: string, startedAt: number];

/** What was charged for the account, or for one group of a request with groups. */
type Part = readonly [
  id: string,
  account: string,
  route: string,
  cost: number,
  decidedAt: number,
  /** 1 if the account's routes share All methods. */
  isShared: 0 | 1,
  windows: readonly ChargedWindow[],
];

/** The signed content. */
type Payload = readonly [
  ...Part,
  /** The name of the counters; null if they have none. */
  counters: string | null,
  /** The further parts of a request with groups. */
  ...further: readonly (readonly [subject: string, ...Part])[],
];

const VERSION = '1';
const LEAST_SECRET = 32;
const ID_BYTES = 16;
/** How many ids get their random bytes in one call, because a call costs as much as the rest of a receipt. */
const IDS_PER_CALL = 64;
/** Longest receipt. Queues and fields of requests have room for it. */
const MAX_LENGTH = 8_192;
const FORM = /^1\.([\w-]+)\.([\w-]{43})$/;
const LETTERS: Readonly<Record<LimitName, string>> = { route: 'r', 'all-methods': 'a' };

const BAD_SECRET = `must be a string of at least ${LEAST_SECRET} characters, or a list of such strings`;
const TOO_LONG = `are too long for a receipt, which has at most ${MAX_LENGTH} characters`;

/** The receipts that were issued in this process. */
const issued = /* @__PURE__ */ new WeakMap<Decision, string>();
/** The ids of decisions, and of the parts of decisions: settling one counts as settling its receipt. */
const ids = /* @__PURE__ */ new WeakMap<Decision, string>();

/** The id of a decision's receipt, or of the part of a receipt; undefined if none was issued. */
export function receiptIdOf(decision: Decision): string | undefined {
  return ids.get(decision);
}

class SignedReceipts implements Receipts {
  readonly #secrets: readonly string[];

  /** @throws OptionError */
  constructor(options: ReceiptOptions) {
    checkOptions(options, ['secret'], 'options');
    const { secret } = options;
    const secrets = Array.isArray(secret) ? secret : [secret];
    const isGood = (each: unknown): boolean => typeof each === 'string' && each.length >= LEAST_SECRET;
    // The message must not show a secret.
    const shown = typeof secret === 'string' ? 'a shorter one' : undefined;
    if (secrets.length === 0 || !secrets.every(isGood)) throw new OptionError('secret', secret, BAD_SECRET, shown);
    this.#secrets = [...secrets];
  }

  /**
   * The receipt of a decision, the same one each time.
   * @throws OptionError if account and route are too long
   */
  #issue(decision: Decision, counters: string | null): string {
    const known = issued.get(decision);
    if (known !== undefined) return known;
    const { account, accepted, parts } = decision;
    const [first, ...further] = parts ?? [{ subject: '', decision }];
    const payload: Payload = [
      ...partOf((first as DecisionPart).decision, accepted),
      counters,
      ...further.map((part) => [part.subject, ...partOf(part.decision, accepted)] as const),
    ];
    const encoded = base64url(new TextEncoder().encode(JSON.stringify(payload)));
    const text = `${VERSION}.${encoded}.${sign(encoded, this.#secrets[0] as string)}`;
    if (text.length > MAX_LENGTH) throw new OptionError('account and route', account, TOO_LONG, `${text.length}`);
    issued.set(decision, text);
    return text;
  }

  /** @throws ReceiptError */
  read(text: string): ReadReceipt {
    if (text.length > MAX_LENGTH) throw new ReceiptError(`has more than ${MAX_LENGTH} characters`);
    const [, encoded, signature] = FORM.exec(text) ?? [];
    if (encoded === undefined || signature === undefined) throw new ReceiptError('is not one, or is damaged');
    // All secrets are tried, in the same time each.
    const matches = this.#secrets.map((secret) => isEqual(sign(encoded, secret), signature));
    if (!matches.includes(true)) throw new ReceiptError('has another signature: it is forged, or of another secret');
    return decode(encoded);
  }

  /** The same limiter, whose decisions have receipts. */
  addTo(limiter: Limiter): Limiter {
    const store = partsOf(limiter)?.store;
    const { counters = null } = store === undefined ? {} : countersOf(store);
    const issue = (decision: Decision): string => this.#issue(decision, counters);
    const added = (decision: Decision): Decision => {
      (decision as { [ISSUER]?: typeof issue })[ISSUER] = issue;
      return decision;
    };
    // A further argument is an error of the limiter.
    const consumeSync: Limiter['consumeSync'] = (...request) => added(limiter.consumeSync(...request));
    return decorateLimiter(limiter, {
      consume:
        (consume) =>
        (...request) => {
          if (!limiter.synchronous) return consume(...request).then(added);
          try {
            return Promise.resolve(consumeSync(...request));
          } catch (error) {
            return Promise.reject(error);
          }
        },
      consumeSync: () => consumeSync,
    });
  }
}

/** Random bytes, and how many of them are used. */
let random: Uint8Array | undefined;
let used = 0;

function newId(): string {
  if (random === undefined || used === random.length) {
    random = crypto.getRandomValues(new Uint8Array(ID_BYTES * IDS_PER_CALL));
    used = 0;
  }
  const from = used;
  used += ID_BYTES;
  return base64url(random.subarray(from, used));
}

/** @param isAccepted false: the request was rejected, so its accepted parts are undone */
function partOf(decision: Decision, isAccepted: boolean): Part {
  const { account, route, cost, decidedAt, degraded, windowSet, trace, isUnsettled } = decision;
  const id = newId();
  ids.set(decision, id);
  // The counters of a degraded decision are in the memory of this process, if there are any.
  const windows = isAccepted && isUnsettled && !degraded ? trace : [];
  const charged = windows.map(
    ({ limit, durationMs, startedAt }): ChargedWindow => [`${LETTERS[limit]}${durationMs}`, startedAt as number],
  );
  const isShared = windowSet.allMethodsScope === 'account' ? 1 : 0;
  return [id, account, route, cost, decidedAt, isShared, charged];
}

/** The prefix keeps a signature from being one of something else that is signed with the same secret. */
function sign(encoded: string, secret: string): string {
  return digestText(`headgate.receipt.${VERSION}.${encoded}`, secret);
}

/** In constant time. Both have the length of a signature. */
function isEqual(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

/** @throws ReceiptError: any process that knows the secret can sign anything */
function decode(encoded: string): ReadReceipt {
  try {
    const base64 = encoded.replaceAll('-', '+').replaceAll('_', '/');
    const bytes = fromBase64(base64.padEnd(Math.ceil(base64.length / 4) * 4, '='));
    const payload = JSON.parse(new TextDecoder().decode(bytes)) as Payload;
    const [id, account, route, cost, decidedAt, isShared, windows, name = null, ...further] = payload;
    if (typeof (name ?? '') !== 'string') throw new TypeError('unexpected content');
    const first = decisionOf([id, account, route, cost, decidedAt, isShared, windows]);
    const counters = name ?? undefined;
    if (further.length === 0) return { decision: first, counters };
    const parts = further.map(([subject, ...part]) => ({ subject, decision: decisionOf(part) }));
    const charged = [{ subject: OF_ACCOUNT, decision: first }, ...parts].filter(
      (part): part is DecisionPart => part.decision !== undefined,
    );
    if (charged.length === 0) return { decision: undefined, counters };
    return { decision: new JointDecision({ account, route, cost }, charged), counters };
  } catch {
    throw new ReceiptError('is signed, but damaged');
  }
}

/** Undefined if nothing was charged. */
function decisionOf([id, account, route, cost, decidedAt, isShared, windows]: Part): Decision | undefined {
  const slots = windows.flatMap(([, startedAt]) => [startedAt, cost]);
  const areTexts = [id, account, route].every((text) => typeof text === 'string');
  if (!areTexts || !/^[\w-]{22}$/.test(id) || ![cost, decidedAt, ...slots].every(Number.isSafeInteger))
    throw new TypeError('unexpected content');
  if (windows.length === 0) return undefined;
  const decision = new Decision(account, route, windowSetOf(windows, isShared === 1), cost, decidedAt, FITS, slots);
  ids.set(decision, id);
  return decision;
}

/** The windows that were charged, whatever the limits are now (S10). Their maxes do not matter. */
function windowSetOf(windows: readonly ChargedWindow[], isShared: boolean): WindowSet {
  const limitOf = (letter: string): Limit =>
    windows
      .filter(([name]) => name.startsWith(letter))
      .map(([name]) => ({ max: Number.MAX_SAFE_INTEGER, durationMs: Number(name.slice(1)) }));
  return createWindowSet(limitOf(LETTERS.route), limitOf(LETTERS['all-methods']), isShared ? 'account' : 'route');
}
