/** Bytes of a body that is refused. */
const BYTES = 1_000_000;
/** A run of marks that Unicode's normal form has to sort. */
const MARKS = '\u0301\u0316'.repeat(990);

/** JSON bodies of 1 MB that cost the most to read and that end in 422, because none of them has the account. */
export function refusedBodies() {
  return [
    filled('{', () => `"${MARKS}":0`, '"end":0}'),
    filled('[', () => nested(40), '0]'),
    filled('[', () => '{"a":1}', '0]'),
    filled('{', (i) => `"N${i.toString(36)}":0`, '"end":0}'),
  ];
}

const nested = (depth) => `${'{"a":['.repeat(depth / 2)}${']}'.repeat(depth / 2)}`;

function filled(start, item, end) {
  const items = [];
  for (let bytes = 0, i = 0; bytes < BYTES; i++) {
    items.push(`${item(i)},`);
    bytes += Buffer.byteLength(items.at(-1));
  }
  return Buffer.from(start + items.join('') + end);
}
