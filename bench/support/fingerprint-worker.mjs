// A process of the topic idempotency: the time of a fingerprint of a 20 MiB multipart body and of SHA-256 over the same
// bytes, in turns, and the extra memory of a fingerprint. Prints JSON. Its argument is the number of rounds, or
// `memory`.
import { createHash, randomBytes } from 'node:crypto';
import { createFingerprinter, fingerprint } from 'headgate/http';
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { median } from 'headgate-bench/statistics';

const MIB = 1_048_576;
const BODY_BYTES = 20 * MIB;
const CHUNK_BYTES = 65_536;
const BOUNDARY = '----headgateBench7MA4YWxkTrZu0gW3kq';
const HEAD = { method: 'POST', path: '/api/v1/emails', contentType: `multipart/form-data; boundary=${BOUNDARY}` };

/**
 * Content of the files in a body: random bytes, lines of base64 as in mail, or only dashes, the start of every
 * boundary.
 */
const CONTENTS = {
  'random bytes': (bytes) => randomBytes(bytes),
  'base64 in lines': (bytes) => {
    const lines = randomBytes(bytes).toString('base64').replace(/.{76}/g, '$&\r\n');
    return Buffer.from(lines.slice(0, bytes));
  },
  dashes: (bytes) => Buffer.alloc(bytes, '-'),
};

/** A body of a few fields and three files. */
function multipart(content) {
  const part = (headers, body) => [`--${BOUNDARY}\r\nContent-Disposition: form-data; ${headers}\r\n\r\n`, body, '\r\n'];
  const file = (i) => [
    `name="attachments"; filename="föto-${i}.jpg"\r\nContent-Type: image/jpeg`,
    content(Math.floor(BODY_BYTES / 3)),
  ];
  const pieces = [
    ...part('name="account_id"', 'acc_1'),
    ...part('name="subject"', 'Grüße'),
    ...[0, 1, 2].flatMap((i) => part(...file(i))),
    `--${BOUNDARY}--\r\n`,
  ];
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
}

function* chunksOf(body) {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) yield body.subarray(at, at + CHUNK_BYTES);
}

function timed(work) {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
}

function hash(body) {
  const digest = createHash('sha256');
  for (const chunk of chunksOf(body)) digest.update(chunk);
  return digest.digest();
}

function print(body) {
  const fingerprinter = createFingerprinter(HEAD);
  for (const chunk of chunksOf(body)) fingerprinter.write(chunk);
  fingerprinter.end();
  return fingerprinter.fingerprint('acc_1');
}

/**
 * The most memory that the process uses while it reads a body, beyond what it used before. The body is generated chunk
 * by chunk, so it is never in memory as a whole.
 */
async function memory() {
  const source = randomBytes(CHUNK_BYTES);
  let most = 0;
  const used = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  async function* body(bytes) {
    yield Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n`);
    for (let at = 0; at < bytes; at += CHUNK_BYTES) {
      yield source;
      most = Math.max(most, used());
    }
    yield Buffer.from(`\r\n--${BOUNDARY}--`);
  }
  await fingerprint({ ...HEAD, body: body(MIB) });
  globalThis.gc();
  const before = used();
  most = 0;
  await fingerprint({ ...HEAD, body: body(BODY_BYTES) });
  return (most - before) / MIB;
}

async function measure(rounds) {
  const results = [];
  for (const [content, make] of Object.entries(CONTENTS)) {
    const body = multipart(make);
    const figures = { hash: [], print: [] };
    for (let round = -3; round < rounds; round++) {
      const works = [
        () => figures.hash.push(timed(() => hash(body))),
        () => figures.print.push(timed(() => print(body))),
      ];
      for (const work of round % 2 === 0 ? works : works.toReversed()) work();
      if (round < 0) figures.hash.length = figures.print.length = 0;
    }
    const ratio = median(figures.hash.map((ms, i) => ms / figures.print[i]));
    results.push({ content, hashMs: median(figures.hash), printMs: median(figures.print), ratio });
  }
  const memoryMib = inFreshProcess(new URL('fingerprint-worker.mjs', import.meta.url), ['memory'], ['--expose-gc']);
  return { results, memoryMib };
}

const [, , what] = process.argv;
console.log(JSON.stringify(await (what === 'memory' ? memory() : measure(Number(what)))));
