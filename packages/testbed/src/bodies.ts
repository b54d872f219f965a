import fc from 'fast-check';

/** A part of a multipart body before it is encoded. */
export interface WrittenPart {
  /** Header lines without their line breaks. */
  readonly headers: readonly (string | Uint8Array)[];
  readonly content: Uint8Array | string;
}

/** The input of {@link multipart}. */
export interface Written {
  readonly boundary: string;
  readonly parts: readonly WrittenPart[];
  /** Includes its line break. */
  readonly preamble?: string;
  readonly epilogue?: string;
}

export const bytesOf = (text: string | Uint8Array): Buffer =>
  typeof text === 'string' ? Buffer.from(text) : Buffer.from(text);

export function multipart({ boundary, parts, preamble = '', epilogue = '\r\n' }: Written): Buffer {
  const pieces: (string | Uint8Array)[] = [preamble];
  for (const { headers, content } of parts) {
    pieces.push(`--${boundary}\r\n`, ...headers.flatMap((header) => [header, '\r\n']), '\r\n', content, '\r\n');
  }
  return Buffer.concat([...pieces, `--${boundary}--`, epilogue].map(bytesOf));
}

export const field = (name: string, content: string | Uint8Array): WrittenPart => ({
  headers: [`Content-Disposition: form-data; name="${name}"`],
  content,
});

export const file = (
  name: string,
  filename: string,
  content: string | Uint8Array,
  type = 'text/plain',
): WrittenPart => ({
  headers: [`Content-Disposition: form-data; name="${name}"; filename="${filename}"`, `Content-Type: ${type}`],
  content,
});

/** Cuts the bytes into chunks of the given lengths; the list of lengths is repeated. */
export function* inChunks(bytes: Uint8Array, lengths: readonly number[] = [65_536]): Generator<Uint8Array> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length] as number;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

export const multipartType = (boundary: string): string => `multipart/form-data; boundary=${boundary}`;

/** Lengths of chunks; often tiny, so that a cut can fall on every byte. */
export const chunkLengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });

const BOUNDARY_CHARACTERS = "0123456789abcXYZ'()+_,-./:=?".split('');
/** Valid boundaries, in quotes. */
export const boundaries = fc
  .string({ unit: fc.constantFrom(...BOUNDARY_CHARACTERS), minLength: 1, maxLength: 70 })
  .map((boundary) => `"${boundary}"`);

export const unquoted = (boundary: string): string => boundary.slice(1, -1);

/** Content that looks like the structure of a multipart body. */
export const contents = (boundary: string): fc.Arbitrary<Uint8Array> => {
  const fragments = [
    '\r',
    '\n',
    '\r\n',
    '-',
    '--',
    `--${boundary}`.slice(0, -1),
    'a',
    '\r\n--',
    '\0',
    'é',
    ':',
    ';',
    '"',
  ];
  return fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.array(fc.constantFrom(...fragments), { maxLength: 12 }).map((pieces) => bytesOf(pieces.join(''))),
  );
};
