/** Bytes by which the finder looks up: the last ones of a form, since many tokens begin alike. */
const TAIL = 4;

interface Form {
  readonly bytes: Buffer;
  readonly secret: string;
}

/**
 * Finds secrets in texts and bytes: as they are, in hexadecimal, in base64 (also inside of a longer encoded text), and
 * percent-encoded. The time to search does not depend on the number of secrets.
 */
export class SecretFinder {
  readonly #forms = new Map<number, Form[]>();
  /** One byte per hash of a tail, so that most bytes are passed over without a look-up. */
  readonly #tails = new Uint8Array(65_536);

  /**
   * @param name the name in a finding: never the secret itself
   * @throws Error if the secret is so short that it would be found by chance
   */
  add(name: string, secret: string | Uint8Array): void {
    const bytes = Buffer.from(secret as string);
    if (bytes.length < 8) throw new Error(`The secret ${name} is shorter than 8 bytes.`);
    for (const form of formsOf(bytes)) {
      const tail = form.readUInt32BE(form.length - TAIL);
      const known = this.#forms.get(tail);
      if (known === undefined) this.#forms.set(tail, [{ bytes: form, secret: name }]);
      else if (!known.some(({ bytes: other }) => other.equals(form))) known.push({ bytes: form, secret: name });
      this.#tails[hashOf(tail)] = 1;
    }
  }

  /** The names of the secrets in a text, each once. */
  find(text: string | Uint8Array): readonly string[] {
    const bytes = typeof text === 'string' ? Buffer.from(text) : Buffer.from(text.buffer, text.byteOffset, text.length);
    const found = new Set<string>();
    let tail = 0;
    for (let end = 0; end < bytes.length; end++) {
      tail = (tail << 8) | (bytes[end] as number);
      if (this.#tails[hashOf(tail)] === 0) continue;
      for (const { bytes: form, secret } of this.#forms.get(tail >>> 0) ?? []) {
        const start = end + 1 - form.length;
        if (start >= 0 && form.compare(bytes, start, end + 1) === 0) found.add(secret);
      }
    }
    return [...found];
  }
}

const hashOf = (tail: number): number => Math.imul(tail, 0x9e3779b1) >>> 16;

function formsOf(bytes: Buffer): readonly Buffer[] {
  const text = bytes.toString();
  const hex = bytes.toString('hex');
  const forms = [bytes, Buffer.from(hex), Buffer.from(hex.toUpperCase()), Buffer.from(encodeURIComponent(text))];
  for (let before = 0; before < 3; before++) {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // The first and the last character may also depend on the bytes before and after the secret.
    const own = encoded.slice([0, 2, 3][before], Math.floor(((before + bytes.length) * 8) / 6));
    forms.push(Buffer.from(own), Buffer.from(own.replaceAll('+', '-').replaceAll('/', '_')));
  }
  return forms;
}
