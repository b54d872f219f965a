import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { ApiDocument, ApiHeader, ApiOperation, ApiResponse } from '../../src/api/document.ts';
import type { Exchange } from './exchanges.ts';

/** The verdict of the document on one exchange. */
export interface Verdict {
  /** `sendEmail 201`; undefined if the exchange belongs to no operation. */
  readonly pair: string | undefined;
  /** The differences between the exchange and the document. */
  readonly faults: readonly string[];
}

/** Response headers that an operation may only send if it declares them. */
const DECLARED_HEADERS = /^(?:x-ratelimit-.*|retry-after|idempotency-replayed)$/;

/** Larger request bodies are not checked. */
const MAX_CHECKED = 262_144;

/** Judges exchanges by an OpenAPI document. */
export class Contract {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #operations: readonly { readonly method: string; readonly path: string; readonly pattern: RegExp }[];

  constructor(readonly document: ApiDocument) {
    // Another copy of ajv may be installed, whose types differ.
    addFormats.default(this.#ajv as never);
    // Which addresses are taken is tested elsewhere; ajv-formats does not know the international ones.
    this.#ajv.addFormat('idn-email', true);
    // Its values are any bytes.
    this.#ajv.addFormat('binary', true);
    this.#ajv.addSchema(document, 'api');
    this.#operations = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => ({ method, path, pattern: patternOf(path) })),
    );
  }

  /** Each `operationId status` that the document declares. */
  declaredPairs(): readonly string[] {
    return this.#operations.flatMap(({ path, method }) => {
      const { operationId, responses } = this.#operation(path, method);
      return Object.keys(responses).map((status) => `${operationId} ${status}`);
    });
  }

  check(exchange: Exchange): Verdict {
    const { url, status } = exchange;
    // HEAD is GET without the body.
    const method = exchange.method === 'HEAD' ? 'GET' : exchange.method;
    const [path = '', query = ''] = url.split('?', 2);
    if (!/^\/(?:api|v2)(?:\/|$)/.test(path)) return { pair: undefined, faults: [] };
    const found = this.#operations.find((each) => each.method === method.toLowerCase() && each.pattern.test(path));
    const faults: string[] = [];
    const fault = (text: string): void => void faults.push(`${method} ${url} → ${status}: ${text}`);
    if (found === undefined) {
      // Without an operation, no other status makes sense.
      const schema = `#/components/schemas/Problem${status}`;
      if (status !== 404 && status !== 400) fault('the document has no such operation');
      else for (const text of this.errorsOf(schema, parse(exchange.body))) fault(text);
      return { pair: undefined, faults };
    }
    const operation = this.#operation(found.path, found.method);
    const pair = `${operation.operationId} ${status}`;
    const { response, pointer } = this.#response(found, operation, status);
    if (response === undefined) {
      fault(`the document does not declare this status: ${exchange.body.toString().slice(0, 300)}`);
      return { pair, faults };
    }
    for (const text of this.#faultsOfHeaders(response, exchange)) fault(text);
    if (exchange.method !== 'HEAD') for (const text of this.#faultsOfBody(response, pointer, exchange)) fault(text);
    if (status < 300) for (const text of this.#faultsOfRequest(found, operation, exchange, query)) fault(text);
    return { pair, faults };
  }

  #operation(path: string, method: string): ApiOperation {
    const operation = this.document.paths[path]?.[method];
    if (operation === undefined) throw new Error(`no operation ${method} ${path}`);
    return operation;
  }

  #response({ path, method }: { path: string; method: string }, { responses }: ApiOperation, status: number) {
    const declared = responses[status];
    if (declared === undefined) return { response: undefined, pointer: '' };
    if (!('$ref' in declared))
      return { response: declared, pointer: `#/paths/${pointerPart(path)}/${method}/responses/${status}` };
    const name = declared.$ref.split('/').at(-1) ?? '';
    return { response: this.document.components.responses[name], pointer: declared.$ref };
  }

  *#faultsOfHeaders({ headers = {} }: ApiResponse, exchange: Exchange): Generator<string> {
    for (const [name, { $ref }] of Object.entries(headers)) {
      const declared = this.document.components.headers[$ref.split('/').at(-1) ?? ''];
      const value = exchange.headers.get(name);
      if (declared === undefined) yield `the header ${name} refers to nothing`;
      else if (value === undefined) {
        if (declared.required === true) yield `the header ${name} is missing`;
      } else if (!this.#fitsHeader(declared, value)) yield `the header ${name} does not fit its schema: ${value}`;
    }
    for (const name of exchange.headers.keys())
      if (DECLARED_HEADERS.test(name) && headers[name] === undefined) yield `the header ${name} is not declared`;
  }

  #fitsHeader({ schema }: ApiHeader, value: string): boolean {
    const isNumber = schema.type === 'integer';
    if (isNumber && !/^\d+$/.test(value)) return false;
    return this.#ajv.validate(schema, isNumber ? Number(value) : value);
  }

  *#faultsOfBody({ content }: ApiResponse, pointer: string, exchange: Exchange): Generator<string> {
    if (content === undefined) {
      if (exchange.body.length > 0) yield 'the document declares no body';
      return;
    }
    const type = essenceOf(exchange.headers.get('content-type'));
    if (content[type] === undefined) yield `the media type ${type} is not declared`;
    else yield* this.errorsOf(`${pointer}/content/${pointerPart(type)}/schema`, parse(exchange.body));
  }

  /** A request that succeeded must fit the document, too. */
  *#faultsOfRequest(
    { path, method }: { path: string; method: string },
    { requestBody, parameters = [] }: ApiOperation,
    { requestHeaders, requestBody: body }: Exchange,
    query: string,
  ): Generator<string> {
    for (const name of new URLSearchParams(query).keys())
      if (!parameters.some((each) => each.in === 'query' && each.name === name))
        yield `the query parameter ${name} is not declared`;
    if (requestBody === undefined) return;
    const type = essenceOf(requestHeaders['content-type']);
    if (requestBody.content[type] === undefined) yield `the media type ${type} of the request is not declared`;
    // The validator cannot take very large bodies.
    else if (type === 'application/json' && body.length < MAX_CHECKED) {
      const schema = `#/paths/${pointerPart(path)}/${method}/requestBody/content/${pointerPart(type)}/schema`;
      for (const text of this.errorsOf(schema, parse(body))) yield `request: ${text}`;
    }
  }

  /** How a value differs from the schema at a pointer into the document. */
  errorsOf(pointer: string, value: unknown): readonly string[] {
    const validate = this.#validators.get(pointer) ?? this.#ajv.compile({ $ref: `api${pointer}` });
    this.#validators.set(pointer, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || 'body'} ${message} ${JSON.stringify(params)}`,
    );
  }
}

const patternOf = (path: string): RegExp => new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}/?$`);

/** A JSON pointer inside a URI. */
const pointerPart = (part: string): string =>
  encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')).replaceAll('~', '%7E');

const essenceOf = (contentType: string | undefined): string =>
  contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
