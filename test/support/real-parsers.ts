import { Readable, Writable } from 'node:stream';
import { Busboy as FastifyBusboy } from '@fastify/busboy';
import busboy from 'busboy';
import formidable from 'formidable';
import { inChunks } from 'headgate-testbed/bodies';

/**
 * The values of a field, of text and of files, as a framework's parser reads them; undefined if it refuses the body.
 */
export type RealParser = (body: Uint8Array, type: string, name: string) => Promise<readonly string[] | undefined>;

/** Replaces the content of a file. */
export const FILE = '(a file)';

/** The parser of multer (Express, Nest, Koa), and of most others. */
const ofBusboy: RealParser = (body, type, name) =>
  new Promise((resolve) => {
    const seen: string[] = [];
    try {
      const parser = busboy({ headers: { 'content-type': type }, defParamCharset: 'utf8' });
      parser.on('field', (field, value) => void (field === name && seen.push(value)));
      parser.on('file', (field, stream) => {
        if (field === name) seen.push(FILE);
        stream.resume().on('error', () => {});
      });
      parser.on('error', () => resolve(undefined)).on('close', () => resolve(seen));
      Readable.from(inChunks(body)).pipe(parser);
    } catch {
      resolve(undefined);
    }
  });

/** The parser of Fastify. */
const ofFastify: RealParser = (body, type, name) =>
  new Promise((resolve) => {
    const seen: string[] = [];
    try {
      const parser = new FastifyBusboy({ headers: { 'content-type': type } });
      parser.on('field', (field: string, value: string) => void (field === name && seen.push(value)));
      parser.on('file', (field: string, stream: Readable) => {
        if (field === name) seen.push(FILE);
        stream.resume().on('error', () => {});
      });
      parser.on('error', () => resolve(undefined)).on('finish', () => resolve(seen));
      Readable.from(inChunks(body)).pipe(parser);
    } catch {
      resolve(undefined);
    }
  });

const ofFormidable: RealParser = async (body, type, name) => {
  const request = Object.assign(Readable.from(inChunks(body)), {
    headers: { 'content-type': type, 'content-length': String(body.length) },
  });
  const form = formidable({
    allowEmptyFiles: true,
    minFileSize: 0,
    maxFields: 0,
    fileWriteStreamHandler: () => new Writable({ write: (_chunk, _encoding, done) => done() }),
  });
  try {
    const [fields, files] = await form.parse(request as never);
    return [...(fields[name] ?? []), ...(files[name] ?? []).map(() => FILE)];
  } catch {
    return undefined;
  }
};

/** Node's own parser, and that of the frameworks on the web API: Hono, Next, Remix. */
const ofFetch: RealParser = async (body, type, name) => {
  try {
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    return form.getAll(name).map((value) => (typeof value === 'string' ? value : FILE));
  } catch {
    return undefined;
  }
};

export const REAL_MULTIPART_PARSERS: Readonly<Record<string, RealParser>> = {
  busboy: ofBusboy,
  '@fastify/busboy': ofFastify,
  formidable: ofFormidable,
  'Response.formData': ofFetch,
};
