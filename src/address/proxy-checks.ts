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
  #fromProxies = 0;
  #fromOthers = 0;
  /** Requests with the field whose peer is not trusted. */
  #untrusted = 0;
  #isOver = false;

  /** @param field in lower case */
  constructor(misuse: MisuseLog, field: string, trustsNone: boolean) {
    this.#misuse = misuse;
    this.#field = field;
    this.#trustsNone = trustsNone;
  }

  /** Whether a request that no trusted proxy sent is still looked at. */
  get looksAtOthers(): boolean {
    return !this.#isOver && this.#fromProxies === 0;
  }

  /** Call it with each request from a trusted proxy. */
  trusted(hasField: boolean): void {
    if (this.#isOver) return;
    this.#isOver = hasField || ++this.#fromProxies === REQUESTS;
    if (hasField || !this.#isOver) return;
    const reason = `None of the first ${REQUESTS} requests from a trusted proxy has the field ${this.#field}`;
    this.#misuse.warn('HG_PROXY_FIELD_MISSING', `${reason}: does your proxy write it, or another one?`);
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
