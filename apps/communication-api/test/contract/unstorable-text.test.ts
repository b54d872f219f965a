import { expect, test } from 'vitest';
import type { ApiDocument, JsonSchema } from '../../src/api/document.ts';
import { linkAccount } from '../support/accounts.ts';
import { type Operation, operationsOf, parametersIn, pathWith } from '../support/operations.ts';
import { formOf } from '../support/requests-of-schemas.ts';
import { startService } from '../support/service.ts';

const service = await startService();
const { id: application, token } = await service.application();
const document = service.app.swagger() as unknown as ApiDocument;
const account = await linkAccount(service.rooms, application);
const { endpoint } = await service.rooms.endpoints.create(application, {
  url: 'https://app.example/',
  triggerEvents: ['*'],
  accountIds: null,
  description: null,
  enabled: true,
});
const ids: Readonly<Record<string, string>> = {
  account_id: account.id,
  scope_id: (await service.rooms.scopes.create(application, { name: 's', reference: null })).id,
  endpoint_id: endpoint.id,
};

const resolved = (schema: JsonSchema): JsonSchema =>
  typeof schema.$ref === 'string'
    ? (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] as JsonSchema)
    : schema;

type Place = readonly (string | number)[];

/** The places of all texts in the values of a schema. */
function* textsIn(given: JsonSchema, place: Place = []): Generator<Place> {
  const schema = resolved(given);
  const { type, properties = {}, items, additionalProperties, anyOf, oneOf } = schema;
  for (const each of [anyOf, oneOf].flat()) if (each !== undefined) yield* textsIn(each as JsonSchema, place);
  if ([type].flat().includes('string')) yield place;
  for (const [name, each] of Object.entries(properties as object)) yield* textsIn(each, [...place, name]);
  if (items !== undefined) yield* textsIn(items as JsonSchema, [...place, 0]);
  if (typeof additionalProperties === 'object') yield [...place, 'any'];
}

/** A value of a schema with its required fields only. */
function smallest(given: JsonSchema): unknown {
  const { examples, enum: values, const: only, type, properties = {}, required = [], anyOf, minimum } = resolved(given);
  if (Array.isArray(examples)) return structuredClone(examples[0]);
  if (only !== undefined || Array.isArray(values)) return only ?? (values as unknown[])[0];
  if (Array.isArray(anyOf)) return smallest(anyOf[0] as JsonSchema);
  if (type === 'array') return [];
  if (type === 'integer') return minimum ?? 0;
  if (type !== 'object') return 'x';
  const fields = properties as Record<string, JsonSchema>;
  return Object.fromEntries((required as string[]).map((name) => [name, smallest(fields[name] ?? {})]));
}

/** The value with a text at a place. What is missing on the way there is made from the schema. */
function withText(given: JsonSchema, value: unknown, [key, ...rest]: Place, text: string): unknown {
  if (key === undefined) return text;
  const schema = resolved(given);
  const kinds = [schema, schema.anyOf, schema.oneOf].flat().map((each) => resolved((each ?? {}) as JsonSchema));
  const has = (each: JsonSchema): boolean =>
    typeof key === 'number' ? each.items !== undefined : Object.hasOwn((each.properties ?? {}) as object, key);
  const kind = kinds.find(has) ?? {};
  const child = (typeof key === 'number' ? kind.items : (kind.properties as Record<string, JsonSchema>)?.[key]) ?? {};
  const old = typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>) : undefined;
  // Of an alternative, the value may be of another one.
  const base = old !== undefined && kind === schema ? old : (smallest(kind) as Record<string | number, unknown>);
  const next = withText(child as JsonSchema, base[key] ?? smallest(child as JsonSchema), rest, text);
  return Array.isArray(base) ? [next, ...base.slice(1)] : { ...base, [key]: next };
}

const withIds = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (name, each) => (typeof each === 'string' ? (ids[name] ?? each) : each));

/** The fields that were refused because of such a text, and not because of another rule. */
const named = new Set<string>();

/** Sends a request that contains such a text, and expects that it is refused. */
async function expectRefusal({ method }: Operation, target: string, body?: string, type = 'application/json') {
  const answer = await fetch(`${service.url}${target}`, {
    method,
    headers: { 'x-api-key': token, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body }),
  });
  const { detail } = (await answer.json()) as { readonly detail?: string };
  expect([404, 422], `${method} ${target} ${body}: ${answer.status} ${detail}`).toContain(answer.status);
  const [, field] = /^(\S+): must not contain NUL or half of a surrogate pair$/.exec(detail ?? '') ?? [];
  if (field !== undefined) named.add(field);
}

// The places come first that the others need.
const operations = [...operationsOf(document)].sort(
  (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'),
);

test.each(operations.map((operation) => [operation.operation.operationId, operation] as const))(
  '%s refuses a text that cannot be stored, wherever it is',
  async (_, operation) => {
    const schema = operation.operation.requestBody?.content['application/json']?.schema;
    const body = schema === undefined ? undefined : withIds(smallest(schema));
    const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => ids[name] ?? 'x');
    if (operation.path.includes('{'))
      await expectRefusal(operation, pathWith(operation, '%00'), body === undefined ? undefined : JSON.stringify(body));
    for (const { name } of parametersIn(operation, 'query')) await expectRefusal(operation, `${path}?${name}=a%00b`);
    if (schema === undefined) return;
    for (const place of textsIn(schema)) {
      await expectRefusal(operation, path, JSON.stringify(withText(schema, body, place, 'a\ud800b')));
      const sent = withText(schema, body, place, 'a\0b') as object;
      await expectRefusal(operation, path, JSON.stringify(sent));
      await expectRefusal(operation, path, formOf(sent), 'application/x-www-form-urlencoded');
    }
  },
);

test('fields without a rule of their own are refused by their names', () => {
  expect([...named].sort()).toEqual(
    expect.arrayContaining([
      ...['scope_id', 'account_scope_id', 'access.scope_id', 'metadata.any', 'endpoint_id', 'event_id'],
      ...['account_ids[0]', 'state', 'config.imap.custom_proxy.username', 'config.global.login_hint', 'body'],
    ]),
  );
});
