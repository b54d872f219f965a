import { OptionError, ReceiptError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import { countersOf } from '../core/counters.ts';
import { Decision, FITS, ISSUER } from '../core/decision.ts';
import type { Limit, LimitName } from '../core/limit.ts';
import { createWindowSet, type WindowSet } from '../core/window-set.ts';
import { base64url, digestText, fromBase64 } from '../http/platform.ts';
import { decorateLimiter } from './decorate-limiter.ts';
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

/** The signed content. */
type Payload = readonly [
  id: string,
  account: string,
  route: string,
  cost: number,
  decidedAt: number,
  /** 1 if the account's routes share All methods. */
  isShared: 0 | 1,
  windows: readonly ChargedWindow[],
  /** The name of the counters; null if they have none. */
  counters: string | null,
];

const VERSION = '1';
const LEAST_SECRET = 32;
const ID_BYTES = 16;
/** Longest receipt. Queues and fields of requests have room for it. */
const MAX_LENGTH = 8_192;
const FORM = /^1\.([\w-]+)\.([\w-]{43})$/;
const LETTERS: Readonly<Record<LimitName, string>> = { route: 'r', 'all-methods': 'a' };

const BAD_SECRET = `must be a string of at least ${LEAST_SECRET} characters, or a list of such strings`;
const TOO_LONG = `are too long for a receipt, which has at most ${MAX_LENGTH} characters`;

/** The receipts that were issued in this process: settling their decisions counts as settling them. */
const issued = /* @__PURE__ */ new WeakMap<Decision, { readonly id: string; readonly text: string }>();

/** The id of a decision's receipt; undefined if none was issued. */
export function receiptIdOf(decision: Decision): string | undefined {
  return issued.get(decision)?.id;
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
  #issue(decision: Decision, isUnsettled: boolean, counters: string | null): string {
    const known = issued.get(decision);
    if (known !== undefined) return known.text;
    const { account, route, cost, decidedAt, degraded, windowSet, trace } = decision;
    const id = base64url(crypto.getRandomValues(new Uint8Array(ID_BYTES)));
    // The counters of a degraded decision are in the memory of this process, if there are any.
    const windows = isUnsettled && !degraded ? trace : [];
    const charged = windows.map(
      ({ limit, durationMs, startedAt }): ChargedWindow => [`${LETTERS[limit]}${durationMs}`, startedAt as number],
    );
    const isShared = windowSet.allMethodsScope === 'account' ? 1 : 0;
    const payload: Payload = [id, account, route, cost, decidedAt, isShared, charged, counters];
    const encoded = base64url(new TextEncoder().encode(JSON.stringify(payload)));
    const text = `${VERSION}.${encoded}.${sign(encoded, this.#secrets[0] as string)}`;
    if (text.length > MAX_LENGTH) throw new OptionError('account and route', account, TOO_LONG, `${text.length}`);
    issued.set(decision, { id, text });
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
    const issue = (decision: Decision, isUnsettled: boolean): string => this.#issue(decision, isUnsettled, counters);
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
    const [id, account, route, cost, decidedAt, isShared, windows, name = null] = JSON.parse(
      new TextDecoder().decode(bytes),
    ) as Payload;
    const slots = windows.flatMap(([, startedAt]) => [startedAt, cost]);
    const counters = name ?? undefined;
    const areTexts = [id, account, route, name ?? ''].every((text) => typeof text === 'string');
    if (!areTexts || !/^[\w-]{22}$/.test(id) || ![cost, decidedAt, ...slots].every(Number.isSafeInteger))
      throw new TypeError('unexpected content');
    if (windows.length === 0) return { id, decision: undefined, counters };
    const windowSet = windowSetOf(windows, isShared === 1);
    return { id, decision: new Decision(account, route, windowSet, cost, decidedAt, FITS, slots), counters };
  } catch {
    throw new ReceiptError('is signed, but damaged');
  }
}

/** The windows that were charged, whatever the limits are now (S10). Their maxes do not matter. */
function windowSetOf(windows: readonly ChargedWindow[], isShared: boolean): WindowSet {
  const limitOf = (letter: string): Limit =>
    windows
      .filter(([name]) => name.startsWith(letter))
      .map(([name]) => ({ max: Number.MAX_SAFE_INTEGER, durationMs: Number(name.slice(1)) }));
  return createWindowSet(limitOf(LETTERS.route), limitOf(LETTERS['all-methods']), isShared ? 'account' : 'route');
}
