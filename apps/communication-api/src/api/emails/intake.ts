import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyFileStream, type BusboyHeaders } from '@fastify/busboy';
import { createFingerprinter, type Fingerprinter, isBodyError } from 'headgate/http';
import { ServiceError } from '../../domain/service-error.ts';
import type { Attachment } from '../../mail/compose.ts';
import type { Spool } from '../../mail/spool.ts';
import { FormFields, parseUrlEncoded } from '../form.ts';
import { MAX_ATTACHMENTS } from './schema.ts';

/** The body of a send, read to its end: fields, files and the fingerprint of the request. */
export interface Intake {
  /** Form fields, or the value of a JSON body. The schema judges them later. */
  readonly fields: unknown;
  readonly attachments: readonly Attachment[];
  readonly fingerprinter: Fingerprinter;
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

const unprocessable = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);

/** Reads the body of a send in one pass: form fields stay in memory, files go to the spool, and every byte is fingerprinted. */
export async function readIntake(request: IntakeRequest, options: IntakeOptions): Promise<Intake> {
  const { headers, method, url } = request;
  const contentType = headers['content-type'] ?? '';
  const essence = contentType.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity')
    throw unprocessable('Content-Encoding: send the body without compression.');
  const [path = '', query] = url.split('?', 2);
  const fingerprinter = createFingerprinter({ method, path, query, contentType }, { secret: options.secret });
  const chunks = read(request.body, fingerprinter, options);
  if (essence === 'multipart/form-data') return readMultipart(chunks, contentType, fingerprinter, options.spool);
  const text = await readText(chunks);
  const fields = essence === 'application/json' ? parseJson(text) : parseUrlEncoded(text);
  return { fields, attachments: [], fingerprinter, close: async () => undefined };
}

/** The chunks of a body, bounded in size and time, each one fingerprinted. */
async function* read(
  body: Readable,
  fingerprinter: Fingerprinter,
  { maxBytes, idleMs }: IntakeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  // The connection must live on, because it carries the error.
  const iterator = body.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  try {
    for (;;) {
      const { done, value: chunk } = await within(idleMs, iterator.next());
      if (done === true) break;
      size += chunk.length;
      if (size > maxBytes)
        throw new ServiceError(413, 'errors/payload_too_large', `The body is larger than ${maxBytes} bytes.`);
      fingerprinter.write(chunk);
      yield chunk;
    }
    fingerprinter.end();
  } catch (error) {
    // What the fingerprinter says of a body may be shown: it never contains a value.
    if (isBodyError(error)) throw unprocessable(error.message);
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET')
      throw new ServiceError(400, 'errors/malformed_request', 'The client has ended the connection.', { cause: error });
    throw error;
  }
}

async function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooSlow = new Promise<never>((_, reject) => {
    const error = new ServiceError(408, 'errors/request_timeout', `The body paused for ${ms} ms. Send it again.`);
    timer = setTimeout(reject, ms, error);
  });
  try {
    return await Promise.race([promise, tooSlow]);
  } finally {
    clearTimeout(timer);
  }
}

async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  const bytes = Buffer.concat(parts);
  if (!isUtf8(bytes)) throw new ServiceError(400, 'errors/malformed_request', 'The body is not valid UTF-8.');
  return bytes.toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError(400, 'errors/malformed_request', 'The body is not valid JSON.');
  }
}

async function readMultipart(
  chunks: AsyncIterable<Uint8Array>,
  contentType: string,
  fingerprinter: Fingerprinter,
  spool: Spool,
): Promise<Intake> {
  const fields = new FormFields();
  const files: Promise<Attachment>[] = [];
  const close = async (): Promise<void> => {
    for (const file of await Promise.allSettled(files)) if (file.status === 'fulfilled') await file.value.file.close();
  };
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
        if (nameIsCut || valueIsCut) throw unprocessable(`A form field is too long.`);
        fields.add(name, value);
      }),
    );
    parser.on('file', (name, stream, filename, _, type) =>
      check(() => {
        const file = storeFile(spool, { name, stream, filename, type }, files.length);
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
    const attachments = await Promise.race([Promise.all(files), faulty]);
    return { fields, attachments, fingerprinter, close };
  } catch (error) {
    parser.destroy();
    await close();
    throw error;
  }
}

function createParser(contentType: string): InstanceType<typeof Busboy> {
  try {
    return new Busboy({
      headers: { 'content-type': contentType } as BusboyHeaders,
      limits: { fieldNameSize: 500, fieldSize: Number.MAX_SAFE_INTEGER, headerPairs: 50, headerSize: 16_384 },
    });
  } catch {
    throw unprocessable('Content-Type: multipart/form-data needs a boundary.');
  }
}

interface Part {
  readonly name: string;
  readonly stream: BusboyFileStream;
  readonly filename: string;
  readonly type: string;
}

async function storeFile(spool: Spool, { name, stream, filename, type }: Part, index: number): Promise<Attachment> {
  const fault = /^attachments(?:\[\d*\])?$/.test(name)
    ? index >= MAX_ATTACHMENTS
      ? `${FILES}: more than ${MAX_ATTACHMENTS} files`
      : nameFault(filename)
    : `${JSON.stringify(name.slice(0, 60))}: a file is not expected here (files belong to ${FILES})`;
  if (fault !== undefined) {
    // The parser waits for each file to be read.
    stream.resume();
    throw unprocessable(fault);
  }
  return { filename: filename || 'attachment', contentType: mediaType(type), file: await spool.store(stream) };
}

function nameFault(filename: string | undefined): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the name becomes part of a header.
  if (filename !== undefined && /[\u0000-\u001f\u007f\u2028\u2029]/.test(filename))
    return `${FILES}: a file name has a line break or another control character`;
  return (filename ?? '').length > MAX_NAME ? `${FILES}: a file name is longer than ${MAX_NAME} characters` : undefined;
}

/** The type of a file, if it has the form of a media type; its parameters are dropped. */
const mediaType = (type: string | undefined): string =>
  /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?=$|[;\s])/.exec(type ?? '')?.[0].toLowerCase() ?? 'application/octet-stream';
