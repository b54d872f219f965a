import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, test } from 'vitest';
import type { ApiDocument } from '../../src/api/document.ts';
import { linkAccount } from '../support/accounts.ts';
import { type Operation, operationsOf, parametersIn } from '../support/operations.ts';
import { broken, formOf, valuesOf } from '../support/requests-of-schemas.ts';
import { startService } from '../support/service.ts';

/** Requests per operation and run. */
const RUNS = NIGHTLY ? 200 : 20;

const service = await startService();
const { id: application, token } = await service.application();
const document = service.app.swagger() as unknown as ApiDocument;
const account = await linkAccount(service.rooms, application, { name: 'me@mock.test' });
const scope = await service.rooms.scopes.create(application, { name: 'One', reference: null });

interface RandomRequest {
  readonly path: string;
  readonly query: string;
  readonly body: string | undefined;
  readonly type: string;
}

/** Ids that exist are as likely as others: behind them is more to go wrong. */
const id = fc.oneof(fc.constantFrom(account.id, scope.id, 'x', '%00', '%F0%9F', '..'), fc.string({ unit: 'binary' }));

const withIds = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (name, each) => {
    if (name === 'account_id' && typeof each === 'string') return account.id;
    if (name === 'scope_id' && typeof each === 'string') return scope.id;
    return each;
  });

/** What is in a URL: a lone surrogate cannot be. */
const encoded = (value: unknown): string => encodeURIComponent(Buffer.from(String(value)).toString());

function requestsOf(operation: Operation): fc.Arbitrary<RandomRequest> {
  const path = fc.array(id, { minLength: 3, maxLength: 3 }).map((ids) => {
    let index = 0;
    return operation.path.replace(/\{[^}]+\}/g, () => encoded(ids[index++] || 'x'));
  });
  const query = fc
    .tuple(
      ...parametersIn(operation, 'query').map(({ name, schema }) =>
        fc
          .option(
            fc.oneof(
              valuesOf(document, schema),
              valuesOf(document, schema),
              fc.string({ unit: 'binary', maxLength: 10 }),
            ),
            { freq: 1 },
          )
          .map((value) => (value === null ? [] : [`${encoded(name)}=${encoded(value)}`])),
      ),
    )
    .map((pairs) => pairs.flat().join('&'));
  const schema = operation.operation.requestBody?.content['application/json']?.schema;
  const body = schema === undefined ? fc.constant({ type: '', body: undefined }) : bodiesOf(valuesOf(document, schema));
  return fc.tuple(path, query, body).map(([path, query, body]) => ({ path, query, ...body }));
}

/** Bodies that fit, bodies with ids that exist, and bodies that are broken somewhere. */
function bodiesOf(fitting: fc.Arbitrary<unknown>): fc.Arbitrary<Pick<RandomRequest, 'body' | 'type'>> {
  const value = fc.oneof(fitting, fitting.map(withIds), fitting.chain(broken));
  const type = fc.constantFrom('application/json', 'application/json', 'application/x-www-form-urlencoded');
  return fc.tuple(value, type).map(([each, type]) => ({ type, body: bodyOf(each, type) }));
}

function bodyOf(value: unknown, type: string): string {
  if (type === 'application/json' || typeof value !== 'object' || value === null) return JSON.stringify(value);
  return formOf(value);
}

/** What deletes the account or the scope comes last. */
const operations = [...operationsOf(document)].sort(
  (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'),
);

for (const operation of operations) {
  const { operationId } = operation.operation;
  test(`${operationId}: no random request is a 5xx, and no answer differs from the document`, async () => {
    await fc.assert(
      fc.asyncProperty(requestsOf(operation), async ({ path, query, body, type }) => {
        const answer = await fetch(`${service.url}${path}${query === '' ? '' : `?${query}`}`, {
          method: operation.method,
          headers: { 'x-api-key': token, ...(body === undefined ? {} : { 'content-type': type }) },
          ...(body === undefined ? {} : { body }),
        });
        const text = await answer.text();
        expect(answer.status, text).toBeLessThan(500);
      }),
      { numRuns: RUNS },
    );
    expect(service.contractFaults()).toEqual([]);
  });
}
