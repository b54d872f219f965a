import { STATUS_TEXT } from './document-text.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };
type Reference = { readonly $ref: string };

export interface ApiMedia {
  schema?: JsonSchema;
  encoding?: Record<string, { contentType: string }>;
}

export interface ApiHeader {
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

export interface ApiResponse {
  description: string;
  headers?: Record<string, Reference>;
  content?: Record<string, ApiMedia>;
}

export interface ApiParameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

export interface ApiOperation {
  readonly operationId: string;
  description?: string;
  /** The version of the API that defines the operation. */
  'x-api-version'?: string;
  readonly parameters?: readonly ApiParameter[];
  requestBody?: { readonly required?: boolean; readonly content: Record<string, ApiMedia> };
  responses: Record<string, ApiResponse | Reference>;
}

/** The parts of an OpenAPI document that this file works with. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
  readonly servers?: readonly { readonly url: string }[];
  readonly components: {
    readonly schemas: Record<string, JsonSchema>;
    readonly responses: Record<string, ApiResponse>;
    readonly headers: Record<string, ApiHeader>;
  };
}

const wholeNumber = { type: 'integer', minimum: 0 };

const HEADERS: Readonly<Record<string, ApiHeader>> = {
  'x-request-id': {
    description: 'Names this request in the log. The same as `req_id` of an error.',
    required: true,
    schema: { type: 'string', minLength: 1 },
  },
  'x-ratelimit-limit': { description: 'Requests that the window allows.', schema: wholeNumber },
  'x-ratelimit-remaining': { description: 'Requests that are left in the window.', schema: wholeNumber },
  'x-ratelimit-reset': { description: 'Seconds until the window ends.', schema: wholeNumber },
  'retry-after': { description: 'Seconds to wait before the next attempt.', schema: wholeNumber },
  'idempotency-replayed': {
    description: 'Set if this is the stored answer of an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
  },
};

const RATE_LIMIT = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];
/** Outcomes that are stored under an idempotency key. */
const REPLAYED = ['201', '403', '409', '422'];
/** These answers come before the limits of the account are checked. */
const BEFORE_LIMITS = ['400', '408', '413'];

const FORM = 'multipart/form-data';
const URL_ENCODED = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

/**
 * Completes the document that was generated from the routes: adds forms, headers and shared error answers. Schemas of
 * requests describe the input of the validators, schemas of answers their output.
 */
export function finishDocument(generated: ApiDocument): ApiDocument {
  const document = structuredClone(generated);
  const responses: Record<string, ApiResponse> = {};
  for (const [path, operations] of Object.entries(document.paths))
    for (const operation of Object.values(operations)) {
      describeVersion(operation, path);
      describeBody(operation, document.components.schemas);
      operation.responses = describeResponses(operation, responses);
    }
  return withUsedSchemas({
    ...document,
    components: { ...document.components, responses, headers: { ...HEADERS } },
  });
}

/** OpenAPI has one version for the whole document, but each operation belongs to the version in its path. */
function describeVersion(operation: ApiOperation, path: string): void {
  const [, major] = /^(?:\/api)?\/v(\d+)\//.exec(path) ?? [];
  if (major === undefined) throw new Error(`${operation.operationId}: its path names no version of the API.`);
  const version = `${major}.0`;
  operation['x-api-version'] = version;
  operation.description = [operation.description, `API version ${version}.`].filter(Boolean).join(' ');
}

function describeBody({ requestBody }: ApiOperation, schemas: Record<string, JsonSchema>): void {
  if (requestBody === undefined) return;
  const { content } = requestBody;
  const schema = content[JSON_TYPE]?.schema;
  if (schema === undefined) return;
  content[URL_ENCODED] = { schema };
  if (content[FORM] === undefined) return;
  // Files are separate parts of a multipart form, and base64 in the other two forms.
  const name = nameOf(schema);
  const form = name === undefined ? undefined : schemas[name];
  if (name === undefined || form === undefined) throw new Error('The schema of a multipart form needs an id.');
  const properties = form.properties as Readonly<Record<string, JsonSchema>>;
  const { maxItems } = properties.attachments ?? {};
  const file = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' };
  const attachments = {
    description: 'Files: one part per file, each with a file name and a media type.',
    type: 'array',
    items: file,
    ...(maxItems === undefined ? {} : { maxItems }),
  };
  const formName = `${name.replace(/Input$/, '')}Form`;
  const { examples: _, requestExamples: __, ...rest } = form;
  schemas[formName] = { ...rest, properties: { ...properties, attachments } };
  const isJson = ({ type }: JsonSchema): boolean => type === 'array' || type === 'object';
  const jsonFields = Object.keys(properties).filter(
    (field) => field !== 'attachments' && isJson(properties[field] ?? {}),
  );
  content[FORM] = {
    schema: { $ref: `${SCHEMAS}${formName}` },
    encoding: {
      ...Object.fromEntries(jsonFields.map((field) => [field, { contentType: JSON_TYPE }])),
      attachments: { contentType: '*/*' },
    },
  };
}

/** The answers of an operation. Answers that several operations share become components. */
function describeResponses(
  { operationId, parameters = [], responses }: ApiOperation,
  shared: Record<string, ApiResponse>,
): ApiOperation['responses'] {
  const isIdempotent = parameters.some(({ name }) => name === 'idempotency-key');
  const entries = Object.entries(responses).map(([status, generated]) => {
    if ('$ref' in generated) throw new Error(`${operationId}: a generated answer is a reference.`);
    const isError = Number(status) >= 400;
    const waits = status === '429' || status === '503' || (isIdempotent && status === '409');
    const names = [
      'x-request-id',
      ...(waits ? ['retry-after'] : []),
      ...(isIdempotent && !BEFORE_LIMITS.includes(status) ? RATE_LIMIT : []),
      ...(isIdempotent && REPLAYED.includes(status) ? ['idempotency-replayed'] : []),
    ];
    const response: ApiResponse = {
      description: (isError ? STATUS_TEXT[status] : undefined) ?? 'Success.',
      headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
      ...(generated.content === undefined ? {} : { content: generated.content }),
    };
    if (!isError || isIdempotent) return [status, response] as const;
    shared[`Problem${status}`] = response;
    return [status, { $ref: `#/components/responses/Problem${status}` }] as const;
  });
  return Object.fromEntries(entries);
}

const SCHEMAS = '#/components/schemas/';

const nameOf = ({ $ref }: JsonSchema): string | undefined =>
  typeof $ref === 'string' && $ref.startsWith(SCHEMAS) ? $ref.slice(SCHEMAS.length) : undefined;

/**
 * Each schema was generated twice, for input and for output. Keeps the used ones, under the shorter name if possible.
 */
function withUsedSchemas(document: ApiDocument): ApiDocument {
  const { schemas } = document.components;
  const used = new Set<string>();
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const name = nameOf(value as JsonSchema);
    if (name !== undefined && !used.has(name)) {
      if (schemas[name] === undefined) throw new Error(`The document refers to ${name}, which does not exist.`);
      used.add(name);
      collect(schemas[name]);
    }
    for (const child of Object.values(value)) collect(child);
  };
  collect(document.paths);
  collect(document.components.responses);
  const renamed = (name: string): string => {
    const short = name.replace(/Input$/, '');
    return used.has(short) ? name : short;
  };
  const entries = [...used].sort().map((name) => [renamed(name), schemas[name]] as const);
  const named: ApiDocument = {
    ...document,
    components: { ...document.components, schemas: Object.fromEntries(entries) as Record<string, JsonSchema> },
  };
  return JSON.parse(JSON.stringify(named), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const name = nameOf(value as JsonSchema);
    if (name !== undefined) return { ...value, $ref: `${SCHEMAS}${renamed(name)}` };
    return readable(value as JsonSchema);
  }) as ApiDocument;
}

/** A schema without the keywords that the generator adds for itself. */
function readable(schema: JsonSchema): JsonSchema {
  const { format, pattern, minimum, maximum, requestExamples, ...rest } = schema;
  return {
    ...rest,
    ...(requestExamples === undefined ? {} : { examples: requestExamples }),
    // The pattern repeats the calendar.
    ...(format === undefined || format === 'base64' ? {} : { format }),
    ...(pattern === undefined || format === 'date-time' ? {} : { pattern }),
    ...(minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum }),
    ...(maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum }),
  };
}
