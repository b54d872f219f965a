import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Exchange } from '../exchanges.ts';

type Schema = Record<string, unknown>;

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}
interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: Content | { readonly $ref: string };
  readonly responses: Readonly<Record<string, Content | { readonly $ref: string }>>;
}
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, Schema>>>>;
}

/** Microsoft's own OpenAPI description, made by scripts/graph-description.mjs. */
const DESCRIPTION = JSON.parse(
  readFileSync(new URL('description.json', import.meta.url), 'utf8'),
) as unknown as Description;

/** Request headers that a client may send without a declaration. All others must be declared. */
const COMMON_HEADERS = new Set([
  ...['accept', 'accept-encoding', 'accept-language', 'authorization', 'connection', 'content-length', 'content-type'],
  ...['host', 'prefer', 'sec-fetch-mode', 'transfer-encoding', 'user-agent'],
  // `fetch` adds them to a request with a condition.
  ...['cache-control', 'pragma'],
]);

/**
 * The differences between Graph and its description, by Microsoft's reference (learn.microsoft.com/graph/api). Nothing
 * else may differ.
 */
const DEPARTURES = {
  /** "Response: 202 Accepted". The description declares 204. */
  accepted: new Set(['me.messages.message.send', 'me.sendMail']),
  /** "Content-Type: text/plain": the base64 of a message in MIME form. The description lists only the JSON form. */
  mime: new Set(['me.CreateMessages', 'me.sendMail']),
};

/** A pattern for groups of four would go back through all of a large text, for which its stack is too small. */
const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

/** Judges exchanges with Microsoft Graph, in both directions, by Microsoft's description. */
export class GraphContract {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<Schema, ValidateFunction>();

  constructor() {
    // Another copy of ajv may be installed, whose types differ.
    addFormats.default(this.#ajv as never);
    this.#ajv.addFormat('base64url', isBase64);
  }

  /** Each operation of the description. */
  get operations(): readonly string[] {
    return Object.values(DESCRIPTION.paths).flatMap((path) =>
      Object.entries(path).flatMap(([name, { operationId }]) => (name === 'parameters' ? [] : [operationId])),
    );
  }

  /** The operation of an exchange, and the differences between the exchange and the operation. */
  check(exchange: Exchange): { readonly operation: string | undefined; readonly faults: readonly string[] } {
    const { method, url } = exchange;
    const [path = '', query = ''] = url.replace(/^\/v1\.0/, '').split('?', 2);
    const operation = operationOf(method, path);
    const faults =
      operation === undefined ? ['there is no such operation'] : [...this.#faultsOf(operation, exchange, query)];
    return {
      operation: operation?.operationId,
      faults: faults.map((fault) => `${method} ${path} → ${exchange.status}: ${fault}`),
    };
  }

  *#faultsOf(operation: Operation, exchange: Exchange, query: string): Generator<string> {
    yield* this.#faultsOfResponse(operation, exchange);
    // A test may make Graph refuse a wrong request.
    if (exchange.status < 400 || exchange.status >= 500) {
      yield* this.#faultsOfParameters(operation, exchange, query);
      yield* this.#faultsOfRequest(operation, exchange);
    }
  }

  *#faultsOfParameters(operation: Operation, { requestHeaders }: Exchange, query: string): Generator<string> {
    const declared = (operation.parameters ?? []).map((each) => resolve<Parameter>(each));
    for (const [name, text] of new URLSearchParams(query)) {
      const parameter = declared.find((each) => each.in === 'query' && each.name === name);
      if (parameter === undefined) yield `the query parameter ${name} is not declared`;
      else {
        const { type } = parameter.schema;
        const value = type === 'array' ? text.split(',') : type === 'integer' ? Number(text) : text;
        yield* this.#errorsOf(parameter.schema, value, `the query parameter ${name}`);
      }
    }
    for (const name of Object.keys(requestHeaders))
      if (
        !COMMON_HEADERS.has(name) &&
        !declared.some((each) => each.in === 'header' && each.name.toLowerCase() === name)
      )
        yield `the request header ${name} is not declared`;
  }

  *#faultsOfRequest(operation: Operation, { requestHeaders, requestBody }: Exchange): Generator<string> {
    const type = requestHeaders['content-type']?.split(';', 1)[0];
    if (operation.requestBody === undefined) {
      if (requestBody.length > 0) yield 'the request must not contain a body';
    } else if (type === 'text/plain' && DEPARTURES.mime.has(operation.operationId)) {
      if (!isBase64(requestBody.toString())) yield 'the request body is not base64';
    } else {
      const schema = resolve<Content>(operation.requestBody).content?.[type ?? '']?.schema;
      if (schema === undefined) yield `the media type ${type} of the request is not declared`;
      else yield* this.#errorsOf(schema, parse(requestBody), 'the request body');
    }
  }

  *#faultsOfResponse(operation: Operation, { status, headers, body }: Exchange): Generator<string> {
    const { responses, operationId } = operation;
    const declared = responses[status] ?? responses[`${String(status)[0]}XX`];
    const isAccepted = status === 202 && DEPARTURES.accepted.has(operationId);
    if (declared === undefined && !isAccepted) yield 'the status is not declared';
    const { content } = declared === undefined ? ({} as Content) : resolve<Content>(declared);
    const schema = content?.['application/json']?.schema;
    if (schema === undefined) {
      if (body.length > 0) yield 'the response must not contain a body';
    } else if (!headers.get('content-type')?.startsWith('application/json')) yield 'the response is not JSON';
    else yield* this.#errorsOf(schema, parse(body), 'the response body');
  }

  *#errorsOf(schema: Schema, value: unknown, what: string): Generator<string> {
    let validate = this.#validators.get(schema);
    if (validate === undefined) {
      const $defs = Object.fromEntries(
        Object.keys(DESCRIPTION.components.schemas ?? {}).map((name) => [name, strict(`#/components/schemas/${name}`)]),
      );
      validate = this.#ajv.compile({ ...strictly(schema), $defs });
      this.#validators.set(schema, validate);
    }
    if (validate(value)) return;
    for (const { instancePath, message, params } of validate.errors ?? [])
      yield `${what} ${instancePath}: ${message} ${JSON.stringify(params)}`;
  }
}

/** Microsoft's reference calls actions by their short name, the description by their full one. Both are the same. */
function operationOf(method: string, path: string): Operation | undefined {
  const isSame = (template: string): boolean => {
    const pattern = template
      .replaceAll('microsoft.graph.', '')
      .replaceAll('.', '\\.')
      .replace(/\{[^}]+\}/g, '[^/]+');
    return new RegExp(`^${pattern}$`).test(path.replace('microsoft.graph.', ''));
  };
  const found = Object.entries(DESCRIPTION.paths).find(([template]) => isSame(template));
  return found?.[1][method.toLowerCase()];
}

function resolve<Value>(value: Value | { readonly $ref: string }): Value {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) return value as Value;
  const [, , kind = '', name = ''] = value.$ref.split('/');
  return DESCRIPTION.components[kind]?.[name] as Value;
}

/** A schema of the description, without the looseness of its generator. */
function strictly(schema: Schema): Schema {
  if (typeof schema.$ref === 'string') return { $ref: `#/$defs/${schema.$ref.split('/').at(-1)}` };
  if (Array.isArray(schema.allOf)) return merged(schema.allOf as Schema[]);
  if (Array.isArray(schema.anyOf))
    // `{type: object, nullable: true}` beside a reference means that it may be null, and not that it may be anything.
    return { anyOf: schema.anyOf.map((each: Schema) => (each.nullable === true ? { type: 'null' } : strictly(each))) };
  const { nullable, items, properties, required, default: _, ...rest } = schema;
  return {
    ...rest,
    ...(nullable === true && typeof rest.type === 'string' ? { type: [rest.type, 'null'] } : {}),
    ...(items === undefined ? {} : { items: strictly(items as Schema) }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties as Schema).map(([name, each]) => [name, strictly(each as Schema)]),
          ),
          // OData's annotations.
          patternProperties: { '@odata\\.': true },
          additionalProperties: false,
          // OData leaves the type out if there is only one.
          required: ((required ?? []) as string[]).filter((name) => name !== '@odata.type'),
        }),
  };
}

const strict = (reference: string): Schema =>
  reference.endsWith('/microsoft.graph.attachment')
    ? attachment()
    : strictly(resolve<Schema>({ $ref: reference }) as Schema);

/** There are several kinds of attachments, so their type is required. */
function attachment(): Schema {
  const { properties, required, ...rest } = strictly(
    resolve<Schema>({ $ref: '#/components/schemas/microsoft.graph.fileAttachment' }) as Schema,
  );
  return {
    ...rest,
    properties: { ...(properties as Schema), '@odata.type': { const: '#microsoft.graph.fileAttachment' } },
    required: [...(required as string[]), '@odata.type', 'name'],
  };
}

/** One object with the properties of all. */
function merged(parts: readonly Schema[]): Schema {
  const flat = (part: Schema): Schema[] => {
    const resolved = resolve<Schema>(part as { $ref: string }) as Schema;
    return Array.isArray(resolved.allOf) ? (resolved.allOf as Schema[]).flatMap(flat) : [resolved];
  };
  const all = parts.flatMap(flat);
  return strictly({
    type: 'object',
    properties: Object.assign({}, ...all.map(({ properties }) => properties)),
    required: all.flatMap(({ required }) => (required ?? []) as string[]),
  });
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
