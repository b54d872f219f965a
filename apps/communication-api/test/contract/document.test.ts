import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import type { ApiDocument, ApiResponse } from '../../src/api/document.ts';
import { VERSION } from '../../src/version.ts';
import { Contract } from '../support/contract.ts';
import { operationsOf } from '../support/operations.ts';
import { startService } from '../support/service.ts';

const { url } = await startService();
const document = (await (await fetch(`${url}/openapi.json`)).json()) as ApiDocument & {
  readonly tags: readonly { readonly name: string }[];
};
const operations = operationsOf(document);
const { schemas, responses } = document.components;

/** Every object in a value. */
function* objectsIn(value: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Readonly<Record<string, unknown>>;
  for (const child of Object.values(value)) yield* objectsIn(child);
}

const answersOf = (each: (typeof operations)[number]): readonly ApiResponse[] =>
  Object.values(each.operation.responses).map((answer) =>
    '$ref' in answer ? (responses[answer.$ref.split('/').at(-1) ?? ''] as ApiResponse) : answer,
  );

test('the document is valid OpenAPI 3.1', async () => {
  expect(document).toMatchObject({ openapi: '3.1.0', servers: [{ url }] });
  expect(await new Validator().validate({ ...structuredClone(document) })).toMatchObject({ valid: true });
});

test('each operation says its version of the API, and the document the version of the service', () => {
  expect(document).toMatchObject({ info: { version: VERSION } });
  for (const { path, operation } of operations) {
    const version = path === '/api/v1/emails' ? '1.0' : '2.0';
    expect(operation).toMatchObject({
      'x-api-version': version,
      description: expect.stringMatching(`API version ${version}\\.$`),
    });
  }
});

test('every reference leads somewhere, and no component is unused', () => {
  const used = new Set<unknown>();
  for (const { $ref } of objectsIn(document)) if ($ref !== undefined) used.add($ref);
  const components = Object.entries(document.components).flatMap(([kind, entries]) =>
    kind === 'securitySchemes' ? [] : Object.keys(entries).map((name) => `#/components/${kind}/${name}`),
  );
  expect([...used].sort()).toEqual(components.sort());
});

test('no schema is there twice, as input and as output', () => {
  for (const name of Object.keys(schemas)) expect(name).not.toMatch(/Input$|\d{4}$|[a-z]\d$/);
  const texts = Object.values(schemas).map((schema) => JSON.stringify(schema));
  expect(new Set(texts).size).toBe(texts.length);
});

test('every operation has an id, a summary, a described tag and the key of the API', () => {
  const tags = document.tags.map(({ name }) => name);
  for (const { operation } of operations) {
    expect(operation).toMatchObject({ operationId: expect.stringMatching(/^[a-z]\w+$/), summary: expect.any(String) });
    expect(tags).toContain((operation as unknown as { tags: string[] }).tags[0]);
  }
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(document).toMatchObject({
    security: [{ apiKey: [] }],
    components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' } } },
  });
});

test('every answer has x-request-id and a schema without unknown properties', () => {
  const closed = (schema: unknown): void => {
    for (const object of objectsIn(schema)) {
      const { $ref } = object;
      if (typeof $ref === 'string') closed(schemas[$ref.split('/').at(-1) ?? '']);
      if (object.type === 'object' && object.properties !== undefined)
        expect(object, JSON.stringify(object)).toMatchObject({ additionalProperties: false });
    }
  };
  for (const answer of operations.flatMap(answersOf)) {
    expect(answer.headers).toHaveProperty('x-request-id');
    expect(Object.keys(answer.content ?? {})).toEqual(['application/json']);
    closed(answer.content);
  }
});

test('every example fits its schema, and every body and answer has an example', () => {
  const contract = new Contract(document);
  for (const [name, schema] of Object.entries(schemas)) {
    const examples = (schema.examples ?? []) as readonly unknown[];
    for (const example of examples)
      expect(contract.errorsOf(`#/components/schemas/${name}`, example), name).toEqual([]);
  }
  const bodies = operations.flatMap(({ operation }) => Object.entries(operation.requestBody?.content ?? {}));
  const answers = operations.flatMap(answersOf).flatMap(({ content = {} }) => Object.entries(content));
  for (const [type, { schema }] of [...bodies, ...answers]) {
    const name = String(schema?.$ref).split('/').at(-1) ?? '';
    if (type !== 'multipart/form-data') expect(schemas[name], name).toHaveProperty('examples');
  }
});

test('an email can be sent as JSON, as a URL-encoded form and as a multipart form with files', () => {
  const { content } = document.paths['/api/v1/emails']?.post?.requestBody ?? {};
  expect(Object.keys(content ?? {}).sort()).toEqual([
    'application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
  ]);
  expect(content?.['multipart/form-data']?.encoding).toMatchObject({
    to: { contentType: 'application/json' },
    attachments: { contentType: '*/*' },
  });
  expect(schemas.EmailRequestForm).toMatchObject({
    required: ['account_id', 'to', 'body'],
    properties: { attachments: { type: 'array', items: { format: 'binary' } } },
  });
  expect(schemas.EmailRequest).toMatchObject({
    properties: { attachments: { items: { properties: { content: { contentEncoding: 'base64' } } } } },
  });
});
