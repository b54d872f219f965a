import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { Busboy, type BusboyFileStream, type BusboyHeaders } from '@fastify/busboy';
import { createFingerprinter, type Fingerprinter, isBodyError } from 'headgate/http';
import { headerTextFault } from '../../domain/header-text.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Attachment } from '../../mail/mail.ts';
import type { Spool } from '../../mail/spool.ts';
import { FormFields, parseUrlEncoded } from '../form.ts';
import { JsonValues } from '../json-values.ts';
import { readRest } from './rest-of-body.ts';
import { MAX_ATTACHMENTS, MEDIA_TYPE } from './schema.ts';

/** The body of a send, read to its end: fields, files and the fingerprint of the request. */
export interface Intake {
  /** Form fields, or the value of a JSON body. The schema judges them later. */
  readonly fields: unknown;
  readonly attachments: readonly Attachment[];
  readonly fingerprinter: Fingerprinter;
  /** Whether the files are freed: the email can no longer be sent. */
  readonly isClosed: boolean;
  /** Frees the files. */
  close(): Promise<void>;
}

export interface IntakeRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

export interface IntakeOptions {
  readonly spool: Spool;
  /** Key of the fingerprints' HMAC. */
  readonly secret: Uint8Array;
  readonly maxBytes: number;
  /** How long the client may pause. */
  readonly idleMs: number;
}

const FILES = 'attachments';
const MAX_NAME = 255;
/** The parser decodes a text field at once, and the process does nothing else meanwhile. In bytes. */
const MAX_FIELD = 10_485_760;
/** Other encodings of a file are relics of email, which form parsers do not decode. */
const PART_ENCODINGS = new Set(['7bit', '8bit', 'binary']);

const malformed = (detail: string): ServiceError => new ServiceError(400, 'errors/malformed_request', detail);
const unprocessable = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);

/**
 * Reads the body of a send in one pass: form fields stay in memory, files go to the spool, every byte is fingerprinted.
 */
export async function readIntake(request: IntakeRequest, options: IntakeOptions): Promise<Intake> {
  const { headers, method, url } = request;
  // The connection must live on, because it carries the error.
  const body: AsyncIterator<Uint8Array> = request.body.iterator({ destroyOnReturn: false });
  try {
    return await readBody({ headers, method, url, body }, options);
  } catch (error) {
    // After a pause, the rest of the body no longer arrives.
    if (!(error instanceof ServiceError && error.status === 408)) await readRest(body, options.maxBytes);
    throw error;
  }
}

async function readBody(
  { headers, method, url, body }: Omit<IntakeRequest, 'body'> & { readonly body: AsyncIterator<Uint8Array> },
  options: IntakeOptions,
): Promise<Intake> {
  const contentType = headers['content-type'] ?? '';
  const essence = contentType.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw unprocessable('Content-Encoding: send the body without compression.');
  if (Number(headers['content-length'] ?? 0) > options.maxBytes) throw tooLarge(options.maxBytes);
  const queryAt = url.indexOf('?');
  const [path, query] = queryAt === -1 ? [url] : [url.slice(0, queryAt), url.slice(queryAt + 1)];
  const fingerprinter = createFingerprinter({ method, path, query, contentType }, { secret: options.secret });
  const chunks = read(body, fingerprinter, options);
  if (essence === 'multipart/form-data') return readMultipart(chunks, contentType, fingerprinter, options.spool);
  const fields = await (essence === 'application/json' ? readJson(chunks) : readText(chunks).then(parseUrlEncoded));
  return new FinishedIntake(fields, [], fingerprinter);
}

class FinishedIntake implements Intake {
  isClosed = false;

  constructor(
    readonly fields: unknown,
    readonly attachments: readonly Attachment[],
    readonly fingerprinter: Fingerprinter,
  ) {}

  async close(): Promise<void> {
    this.isClosed = true;
    for (const { file } of this.attachments) await file.close();
  }
}

/** The chunks of a body, bounded in size and time, each one fingerprinted. */
async function* read(
  body: AsyncIterator<Uint8Array>,
  fingerprinter: Fingerprinter,
  { maxBytes, idleMs }: IntakeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  try {
    for (;;) {
      const { done, value: chunk } = await within(idleMs, body.next());
      if (done === true) break;
      size += chunk.length;
      if (size > maxBytes) throw tooLarge(maxBytes);
      fingerprinter.write(chunk);
      yield chunk;
    }
    fingerprinter.end();
  } catch (error) {
    // The errors of the fingerprinter may be shown: they never contain a value.
    if (isBodyError(error)) throw unprocessable(error.message);
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET')
      throw new ServiceError(400, 'errors/malformed_request', 'The client has ended the connection.', { cause: error });
    throw error;
  }
}

const tooLarge = (maxBytes: number): ServiceError =>
  new ServiceError(413, 'errors/payload_too_large', `The body is larger than ${maxBytes} bytes.`);

async function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooSlow = new Promise<never>((_, reject) => {
    const end = (): void =>
      reject(new ServiceError(408, 'errors/request_timeout', `The body paused for ${ms} ms. Send it again.`));
    // If this process was busy, the bytes may be there already: they are read first.
    timer = setTimeout(() => setImmediate(end), ms);
  });
  try {
    return await Promise.race([promise, tooSlow]);
  } finally {
    clearTimeout(timer);
  }
}

/** @param onChunk called with each chunk */
async function readText(
  chunks: AsyncIterable<Uint8Array>,
  onChunk: (chunk: Uint8Array) => void = () => undefined,
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) {
    onChunk(chunk);
    parts.push(chunk);
  }
  const bytes = Buffer.concat(parts);
  if (!isUtf8(bytes)) throw malformed('The body is not valid UTF-8.');
  // Other requests are served between the steps of a large body.
  await turn();
  return bytes;
}

async function readJson(chunks: AsyncIterable<Uint8Array>): Promise<unknown> {
  const values = new JsonValues();
  const text = (await readText(chunks, (chunk) => values.write(chunk))).toString();
  // Many clients send this type with every request, even without a body.
  if (text === '') return undefined;
  await turn();
  try {
    return JSON.parse(text);
  } catch {
    throw malformed('The body is not valid JSON.');
  } finally {
    await turn();
  }
}

async function readMultipart(
  chunks: AsyncIterable<Uint8Array>,
  contentType: string,
  fingerprinter: Fingerprinter,
  spool: Spool,
): Promise<Intake> {
  const fields = new FormFields();
  const files: Promise<Attachment | undefined>[] = [];
  const streams: BusboyFileStream[] = [];
  let parts = 0;
  const parser = createParser(contentType);
  const faulty = new Promise<never>((_, reject) => {
    const check = (run: () => void) => {
      try {
        run();
      } catch (error) {
        reject(error);
      }
    };
    parser.on('error', () => reject(unprocessable('The multipart body is malformed.')));
    parser.on('field', (name, value, nameIsCut, valueIsCut) =>
      check(() => {
        parts++;
        if (nameIsCut) throw unprocessable('The name of a form field is too long.');
        if (valueIsCut)
          throw unprocessable(
            `${nameOf(name)}: is longer than ${MAX_FIELD} bytes, the most of a field in multipart/form-data.`,
          );
        fields.add(nameOf(name), value);
      }),
    );
    parser.on('file', (name, stream, filename, encoding, type) =>
      check(() => {
        parts++;
        streams.push(stream);
        // A refused file is not read, and a stream without a listener throws its error.
        stream.on('error', () => undefined);
        const file = storeFile(spool, { name: nameOf(name), stream, filename, encoding, type }, files.length);
        file.catch(reject);
        files.push(file);
      }),
    );
  });
  // It is awaited below, but may reject before that.
  faulty.catch(() => undefined);
  const ended = new Promise<void>((resolve) => parser.on('finish', resolve));
  try {
    for await (const chunk of chunks) {
      if (parser.write(chunk)) continue;
      await Promise.race([new Promise((resolve) => parser.once('drain', resolve)), faulty]);
    }
    parser.end();
    await Promise.race([ended, faulty]);
    if (parts !== partsSeenBy(parser))
      throw unprocessable('A part of the form lacks a Content-Disposition: form-data with a name.');
    const attachments = await Promise.race([Promise.all(files), faulty]);
    return new FinishedIntake(
      fields,
      attachments.filter((each) => each !== undefined),
      fingerprinter,
    );
  } catch (error) {
    parser.destroy();
    // The parser does not end the streams of its files, and their readers would wait for ever.
    for (const stream of streams) stream.destroy(error as Error);
    for (const file of await Promise.allSettled(files)) if (file.status === 'fulfilled') await file.value?.file.close();
    throw error;
  }
}

/** Despite its types, the parser passes no name if the part lacks one. */
function nameOf(name: string | undefined): string {
  if (name === undefined) throw unprocessable('A part of the form lacks a name.');
  return name;
}

/** The parser skips parts without a usable Content-Disposition silently. An email must not be sent without its file. */
const partsSeenBy = (parser: InstanceType<typeof Busboy>): number =>
  (parser as unknown as { readonly _parser: { readonly _nparts: number } })._parser._nparts;

function createParser(contentType: string): InstanceType<typeof Busboy> {
  try {
    return new Busboy({
      headers: { 'content-type': contentType } as BusboyHeaders,
      // Browsers give JSON in a form the file name "blob".
      isPartAFile: (name, type, filename) =>
        !(filename === 'blob' && type === 'application/json' && !name?.startsWith(FILES)) &&
        (type === 'application/octet-stream' || filename !== undefined),
      limits: { fieldNameSize: 500, fieldSize: MAX_FIELD, headerPairs: 50, headerSize: 16_384 },
    });
  } catch {
    throw unprocessable('Content-Type: multipart/form-data needs a boundary.');
  }
}

interface Part {
  readonly name: string;
  readonly stream: BusboyFileStream;
  readonly filename: string;
  readonly encoding: string;
  readonly type: string;
}

/** Undefined if the part is what a browser sends for an input of files without a file: no name and no bytes. */
async function storeFile(spool: Spool, part: Part, index: number): Promise<Attachment | undefined> {
  const { stream, filename, type } = part;
  const fault = fileFault(part, index);
  if (fault !== undefined) {
    // The parser waits for each file to be read.
    stream.resume();
    throw unprocessable(fault);
  }
  const file = await spool.store(stream);
  if (!filename && file.size === 0) return undefined;
  return { filename: filename || 'attachment', contentType: mediaType(type), file };
}

function fileFault({ name, filename, encoding }: Part, index: number): string | undefined {
  if (!/^attachments(?:\[\d*\])?$/.test(name))
    return `${JSON.stringify(name.slice(0, 60))}: a file is not expected here (files belong to ${FILES})`;
  if (index >= MAX_ATTACHMENTS) return `${FILES}: more than ${MAX_ATTACHMENTS} files`;
  if (!PART_ENCODINGS.has(encoding)) return `${FILES}: send the bytes themselves, without Content-Transfer-Encoding`;
  return nameFault(filename);
}

function nameFault(filename: string | undefined = ''): string | undefined {
  const fault = headerTextFault(filename);
  if (fault !== undefined) return `${FILES}: the name of a file ${fault}`;
  return filename.length > MAX_NAME ? `${FILES}: a file name is longer than ${MAX_NAME} characters` : undefined;
}

/** The type of a file if it is a valid media type, without its parameters. */
export const mediaType = (type: string | undefined): string =>
  MEDIA_TYPE.exec(type ?? '')?.[0].toLowerCase() ?? 'application/octet-stream';
