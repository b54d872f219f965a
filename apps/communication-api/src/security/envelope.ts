import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** A key that everything else is encrypted under, or derived from. */
export interface MasterKey {
  /** 1 to 16 letters and digits. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** What a derived key is for. Two purposes never share a key. */
export type DerivedPurpose = 'message-id' | 'fingerprint' | 'csrf' | 'wizard-cookie' | 'wizard-callback' | 'tracking';

const NONCE = 12;
const TAG = 16;
const KEY = 32;
const WRAPPED = NONCE + KEY + TAG;

/**
 * Envelope encryption (AES-256-GCM): each secret has a data key of its own, which is wrapped by a master key. A sealed
 * value names its master key, so that keys can be rotated without decrypting the secrets.
 */
export class Envelope {
  /** The current master key never changes, and each send needs a derived key. */
  readonly #derived = new Map<DerivedPurpose, Uint8Array>();
  readonly #current: MasterKey;
  readonly #keys: ReadonlyMap<string, Uint8Array>;

  /** @param keys the first one seals; all of them open */
  constructor(keys: readonly MasterKey[]) {
    const [current] = keys;
    if (current === undefined) throw new Error('There is no master key.');
    this.#current = current;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  /**
   * @param context names the place of the value, for example `accounts/acc_1/secret`. The value can be opened there
   * only, so a value that was moved to another row is refused.
   */
  seal(context: string, value: Uint8Array): Uint8Array {
    const { id, key } = this.#current;
    const dataKey = randomBytes(KEY);
    const name = Buffer.from(id, 'latin1');
    return Buffer.concat([
      Uint8Array.of(name.length),
      name,
      encrypt(key, `${context}#key`, dataKey),
      encrypt(dataKey, context, value),
    ]);
  }

  /** @throws Error if the value was changed, belongs to another place, or was sealed under a key that is not known */
  open(context: string, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const start = 1 + bytes.readUInt8(0);
    const id = bytes.toString('latin1', 1, start);
    const key = this.#keys.get(id);
    if (key === undefined)
      throw new Error(`A secret is sealed under the master key "${id}", which is not in SECRET_KEYS.`);
    const dataKey = decrypt(key, `${context}#key`, bytes.subarray(start, start + WRAPPED));
    return decrypt(dataKey, context, bytes.subarray(start + WRAPPED));
  }

  sealJson(context: string, value: unknown): Uint8Array {
    return this.seal(context, Buffer.from(JSON.stringify(value)));
  }

  openJson<Value>(context: string, sealed: Uint8Array): Value {
    return JSON.parse(this.open(context, sealed).toString()) as Value;
  }

  /** A key for one purpose (HKDF-SHA-256), from the current master key. */
  derive(purpose: DerivedPurpose): Uint8Array {
    const key = this.#derived.get(purpose) ?? deriveFrom(this.#current.key, purpose);
    this.#derived.set(purpose, key);
    return key;
  }

  /** The keys for one purpose from all master keys, the current one first. Older values were made with the others. */
  deriveAll(purpose: DerivedPurpose): readonly Uint8Array[] {
    return [...this.#keys.values()].map((key) => deriveFrom(key, purpose));
  }
}

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
