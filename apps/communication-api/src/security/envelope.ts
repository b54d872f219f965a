import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** A key that everything else is encrypted under, or derived from. */
export interface MasterKey {
  /** 1 to 16 letters and digits. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** The purpose of a derived key. Two purposes never share a key. */
export type DerivedPurpose =
  | 'message-id'
  | 'fingerprint'
  | 'csrf'
  | 'wizard-cookie'
  | 'wizard-callback'
  | 'tracking'
  | 'second-factor';

const NONCE = 12;
const TAG = 16;
const KEY = 32;
/** A data key under a master key, behind the name of that key. */
export const WRAPPED = NONCE + KEY + TAG;

/**
 * Envelope encryption (AES-256-GCM): each secret is encrypted with its own data key, which is wrapped by a master key.
 * A sealed value names its master key, so that keys can be rotated without decrypting the secrets.
 */
export class Envelope {
  /** Each send needs a derived key. */
  readonly #derived = new Map<DerivedPurpose, Uint8Array>();
  readonly #current: MasterKey;
  readonly #keys: ReadonlyMap<string, Uint8Array>;

  /**
   * @param keys the first one seals; all of them open
   * @param root the secret that keys for other purposes are derived from: it stays the same when the master keys are
   * rotated. Default: the current master key
   */
  constructor(
    keys: readonly MasterKey[],
    private readonly root?: Uint8Array,
  ) {
    const [current] = keys;
    if (current === undefined) throw new Error('There is no master key.');
    this.#current = current;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  /** The id of the key that seals. */
  get currentKeyId(): string {
    return this.#current.id;
  }

  /** The ids of all keys, the current one first. */
  get keyIds(): readonly string[] {
    return [...this.#keys.keys()];
  }

  /**
   * @param context names the place of the value, for example `accounts/acc_1/secret`. The value can be opened there
   * only, so a value that was moved to another row is refused.
   */
  seal(context: string, value: Uint8Array): Uint8Array {
    const dataKey = randomBytes(KEY);
    return Buffer.concat([this.#wrap(context, dataKey), encrypt(dataKey, context, value)]);
  }

  /** @throws Error if the value was changed, belongs to another place, or was sealed under a key that is not known */
  open(context: string, sealed: Uint8Array): Buffer {
    const { dataKey, rest } = this.#unwrap(context, sealed);
    return decrypt(dataKey, context, rest);
  }

  /**
   * Puts a sealed value under the current master key. Only its data key is decrypted, and encrypted again.
   * @param head the value, or its first bytes: the name of its key, and {@link WRAPPED} bytes
   * @returns the bytes that replace the head
   * @throws Error as `open` does; a change behind the head is not noticed
   */
  rewrap(context: string, head: Uint8Array): Uint8Array {
    const { dataKey, rest } = this.#unwrap(context, head);
    return Buffer.concat([this.#wrap(context, dataKey), rest]);
  }

  #wrap(context: string, dataKey: Uint8Array): Buffer {
    const { id, key } = this.#current;
    return Buffer.concat([keyName(id), encrypt(key, `${context}#key`, dataKey)]);
  }

  #unwrap(context: string, sealed: Uint8Array): { readonly dataKey: Buffer; readonly rest: Buffer } {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const id = keyIdOf(bytes);
    const start = keyName(id).length;
    const key = this.#keys.get(id);
    if (key === undefined)
      throw new Error(`A secret is sealed under the master key "${id}", which is not in SECRET_KEYS.`);
    const end = start + WRAPPED;
    return { dataKey: decrypt(key, `${context}#key`, bytes.subarray(start, end)), rest: bytes.subarray(end) };
  }

  sealJson(context: string, value: unknown): Uint8Array {
    return this.seal(context, Buffer.from(JSON.stringify(value)));
  }

  openJson<Value>(context: string, sealed: Uint8Array): Value {
    return JSON.parse(this.open(context, sealed).toString()) as Value;
  }

  /** A key for one purpose (HKDF-SHA-256), from the root. */
  derive(purpose: DerivedPurpose): Uint8Array {
    const key = this.#derived.get(purpose) ?? deriveFrom(this.root ?? this.#current.key, purpose);
    this.#derived.set(purpose, key);
    return key;
  }

  /**
   * The keys for one purpose, from the root and from all master keys. The root's key is first; older values need
   * others.
   */
  deriveAll(purpose: DerivedPurpose): readonly Uint8Array[] {
    return [this.derive(purpose), ...[...this.#keys.values()].map((key) => deriveFrom(key, purpose))];
  }
}

/** The id of the master key that a value is sealed under. */
export function keyIdOf(sealed: Uint8Array): string {
  const [length = 0] = sealed;
  return Buffer.from(sealed.subarray(1, 1 + length)).toString('latin1');
}

/** How a sealed value begins: the name of its master key. */
export const keyName = (id: string): Buffer => Buffer.concat([Uint8Array.of(id.length), Buffer.from(id, 'latin1')]);

const deriveFrom = (key: Uint8Array, purpose: DerivedPurpose): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', key, '', `communication-api ${purpose}`, KEY));

function encrypt(key: Uint8Array, context: string, value: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Uint8Array, context: string, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE), { authTagLength: TAG })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(-TAG));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()]);
}
