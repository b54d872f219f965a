import type { MisuseLog } from '../core/misuse.ts';

/** Fields that only a proxy writes, unless a client forges them. */
const FIELDS_OF_PROXIES = ['x-forwarded-for', 'forwarded'];
/** So many first requests are looked at. */
const REQUESTS = 1_000;
/** So many requests with the field, and none of them from a trusted proxy, are probably a mistake. */
const UNTRUSTED = 100;

/** Looks for signs that the wrong proxies are trusted, or the wrong field is read. */
export class ProxyChecks {
  readonly #misuse: MisuseLog;
  readonly #field: string;
  readonly #trustsNone: boolean;
  /** How many proxies are counted; 0 if they are listed. */
  readonly #counted: number;
  #hasField = false;
  #fromProxies = 0;
  #fromOthers = 0;
  /** Requests with the field whose peer is not trusted. */
  #untrusted = 0;
  #isOver = false;

  /** @param field in lower case */
  constructor(misuse: MisuseLog, field: string, trustedProxies: number | readonly string[]) {
    this.#misuse = misuse;
    this.#field = field;
    this.#counted = typeof trustedProxies === 'number' ? trustedProxies : 0;
    this.#trustsNone = this.#counted === 0 && !(trustedProxies as readonly string[]).length;
  }

  /** Whether a request that no trusted proxy sent is still looked at. */
  get looksAtOthers(): boolean {
    return !this.#isOver && this.#fromProxies === 0;
  }

  /** Call it with the elements of the field of each request from a trusted proxy. */
  trusted(entries: readonly string[]): void {
    if (this.#isOver) return;
    const written = entries.filter((entry) => entry !== '').length;
    this.#hasField ||= written > 0;
    if (written > 0 && written < this.#counted) {
      this.#warnOfCount(written);
      return;
    }
    // A count is compared with more than one list, because a client can make up the missing addresses.
    this.#isOver = ++this.#fromProxies === REQUESTS || (this.#hasField && this.#counted < 2);
    if (this.#hasField || !this.#isOver) return;
    const reason = `None of the first ${REQUESTS} requests from a trusted proxy has the field ${this.#field}`;
    this.#misuse.warn('HG_PROXY_FIELD_MISSING', `${reason}: does your proxy write it, or another one?`);
  }

  /** Each counted proxy adds one address, so a shorter list passed fewer proxies. */
  #warnOfCount(written: number): void {
    this.#isOver = true;
    const reason = `trustedProxies is ${this.#counted}, but a request has ${written} in ${this.#field}`;
    this.#misuse.warn('HG_TOO_FEW_PROXIES', `${reason}: a client that writes more can choose its address.`);
  }

  /** Call it with each other request, while it looks at them. */
  untrusted(has: (field: string) => boolean): void {
    const fields = this.#trustsNone ? FIELDS_OF_PROXIES : [this.#field];
    const found = fields.find(has);
    const isSign = found !== undefined && ++this.#untrusted >= (this.#trustsNone ? 1 : UNTRUSTED);
    this.#isOver = isSign || ++this.#fromOthers === REQUESTS;
    if (!isSign) return;
    const reason = this.#trustsNone
      ? `A request has the field ${found}, but no proxy is trusted`
      : `${UNTRUSTED} requests have the field ${found}, but no trusted proxy ever connected`;
    this.#misuse.warn('HG_PROXY_NOT_TRUSTED', `${reason}: name a proxy in front of this server in trustedProxies.`);
  }
}
