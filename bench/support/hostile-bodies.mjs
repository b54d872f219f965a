// Bodies of 1 MB that are as expensive as possible to read, and query strings of 12 KB. Each has the field account_id.

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data; boundary=bnd';
const MEGABYTE = 1_000_000;
const QUERY_BYTES = 12_000;

/** Pieces until they have this many bytes. */
function pieces(make, bytes, separator = '') {
  const all = [];
  for (let length = 0, i = 0; length < bytes; i++) {
    const piece = make(i);
    all.push(piece);
    length += Buffer.byteLength(piece) + separator.length;
  }
  return all.join(separator);
}

const repeated = (unit, bytes) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));
const body = (type, text) => ({ type, body: Buffer.from(text) });
const list = (make) => body(JSON_TYPE, `{"account_id":"acc_1","x":[${pieces(make, MEGABYTE, ',')}]}`);
const object = (make) => body(JSON_TYPE, `{"account_id":"acc_1",${pieces(make, MEGABYTE, ',')}}`);
const pairs = (make) => body(FORM, `account_id=acc_1&${pieces(make, MEGABYTE, '&')}`);
const part = (name, rest = '\r\n\r\nx') => `--bnd\r\nContent-Disposition: form-data; name="${name}"${rest}\r\n`;
const parts = (count, make) => {
  const all = Array.from({ length: count }, (_, i) => make(i));
  return body(MULTIPART, `${part('account_id', '\r\n\r\nacc_1')}${all.join('')}--bnd--\r\n`);
};
const nested = (depth, open, close) => `${open.repeat(depth)}1${close.repeat(depth)}`;
/** Unicode sorts a run of these marks, which takes a time that is quadratic in its length. */
const marks = (bytes) => repeated('\u0315\u0300', bytes);
const short = (i) => i.toString(36);

/** `{ type, body }` by title. */
export const HOSTILE_BODIES = {
  'JSON: marks in names': () => object((i) => `"${i}${marks(4_000)}":1`),
  'JSON: short runs of marks in names': () => object((i) => `"${i}${`a${marks(160)}`.repeat(24)}":1`),
  'JSON: marks in values': () => object((i) => `"k${i}":"${marks(4_000)}"`),
  ...Object.fromEntries(
    [20, 32, 48, 62].map((depth) => [
      `JSON: objects nested ${depth} deep`,
      () => list(() => nested(depth, '{"a":', '}')),
    ]),
  ),
  'JSON: objects nested 60 deep, with a second member': () => list(() => nested(60, '{"b":1,"a":', '}')),
  'JSON: arrays nested 62 deep': () => list(() => nested(62, '[', ']')),
  'JSON: empty objects': () => list(() => '{}'),
  'JSON: small objects': () => list(() => '{"a":1}'),
  'JSON: small objects, names not in order': () => list(() => '{"b":1,"a":1}'),
  'JSON: small objects, names with escapes': () => list(() => '{"\\n":1,"\\t":1}'),
  'JSON: short names': () => object((i) => `"${short(i)}":1`),
  'JSON: short names with capitals': () => object((i) => `"K${short(i)}":1`),
  'JSON: short names of other scripts': () => object((i) => `"é${short(i)}":1`),
  'JSON: short names with escapes': () => object((i) => `"\\n${short(i)}":1`),
  'JSON: long names': () => object((i) => `"${i}${'k'.repeat(4_000)}":1`),
  'JSON: one name again and again': () => object(() => '"a":1'),
  'JSON: strings of escapes': () => object((i) => `"k${i}":"${'\\u00e9\\n'.repeat(1_000)}"`),
  'JSON: text of 3 and 4 bytes per character': () => object((i) => `"k${i}":"${'€😀'.repeat(500)}"`),
  'JSON: numbers of one digit': () => list(() => '1'),
  'JSON: numbers of 10,000 digits': () => object((i) => `"n${i}":${'1234567890'.repeat(1_000)}`),
  'JSON: literals': () => list(() => 'null'),
  'form: names of one byte': () => pairs(() => 'a'),
  'form: pairs': () => pairs((i) => `${short(i)}=1`),
  'form: 900 long names with capitals': () => pairs((i) => (i < 900 ? `K${i}${'A'.repeat(1_100)}` : 'z')),
  'form: marks in names': () => pairs((i) => `${i}${marks(4_000)}`),
  'form: escapes': () => body(FORM, `account_id=acc_1&b=${repeated('%41', MEGABYTE)}`),
  'form: escapes in escapes': () => pairs((i) => `${i}${'%2541'.repeat(1_300)}`),
  'form: semicolons': () => body(FORM, `account_id=acc_1&b=${repeated(';A=', MEGABYTE)}`),
  'form: semicolons and marks': () => body(FORM, `account_id=acc_1&b=${repeated(`;${marks(3_000)}`, MEGABYTE)}`),
  'multipart: 999 parts of 1 KB': () => parts(999, (i) => part(`f${i}`, `\r\n\r\n${'x'.repeat(930)}`)),
  'multipart: 60 parts with 4,000 headers': () => parts(60, (i) => part(`f${i}`, `\r\n${'a:\r\n'.repeat(4_000)}\r\nx`)),
  'multipart: long headers': () => parts(60, (i) => part(`f${i}`, `\r\nx: ${'y'.repeat(16_000)}\r\n\r\nx`)),
  'multipart: folded headers': () => parts(60, (i) => part(`f${i}`, `\r\nx:${'\r\n '.repeat(5_000)}\r\n\r\nx`)),
  'multipart: parameters': () => parts(60, (i) => part(`f${i}`, `${';a=b'.repeat(3_800)}\r\n\r\nx`)),
  'multipart: marks in names': () => parts(60, (i) => part(`${i}${marks(15_000)}`)),
  'multipart: almost boundaries': () => parts(1, () => part('f', `\r\n\r\n${repeated('\r\n--bn', MEGABYTE)}`)),
};

/** Text by title. They are read as forms are. */
export const HOSTILE_QUERIES = {
  'query: pairs': `account_id=acc_1${Array.from({ length: 950 }, (_, i) => `&A${short(i)}=12345`).join('')}`,
  'query: names of one byte': `account_id=acc_1${'&A'.repeat(990)}`,
  'query: names of other scripts': `account_id=acc_1${'&%c3%a9b=1'.repeat(990)}`,
  'query: semicolons': `account_id=acc_1&b=${repeated(';A', QUERY_BYTES - 30)}`,
  'query: semicolons, not UTF-8': `account_id=acc_1&b=${repeated(';%ff=', QUERY_BYTES - 30)}`,
  'query: marks': `account_id=acc_1&${repeated('%CC%95%CC%80', QUERY_BYTES - 30)}=1`,
};
