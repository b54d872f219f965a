import { expect, test } from 'vitest';
import type { ApiDocument } from '../../src/api/document.ts';
import { Contract } from '../support/contract.ts';
import type { Exchange } from '../support/exchanges.ts';
import { startService } from '../support/service.ts';

const { app } = await startService();
const contract = new Contract(app.swagger() as unknown as ApiDocument);

const sent = { object: 'EmailSent', tracking_id: 'eml_1', provider_id: null, provider_immutable_id: null };
const email = { account_id: 'acc_1', to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
const headers = { 'x-request-id': 'r1', 'content-type': 'application/json', 'x-ratelimit-limit': '10' };

/** An exchange that fits the document, but for what is given. */
function exchange(
  given: { body?: object; request?: object; headers?: Record<string, string> } & Partial<
    Pick<Exchange, 'method' | 'url' | 'status'>
  > = {},
): Exchange {
  const { body = sent, request = email, headers: fields = headers, ...rest } = given;
  return {
    method: 'POST',
    url: '/api/v1/emails',
    status: 201,
    requestHeaders: { 'content-type': 'application/json' },
    requestBody: Buffer.from(JSON.stringify(request)),
    headers: new Map(Object.entries(fields)),
    body: Buffer.from(JSON.stringify(body)),
    ...rest,
  };
}

const faultsOf = (given: Parameters<typeof exchange>[0]): string => contract.check(exchange(given)).faults.join('\n');

test('an exchange as in the document has no fault', () => {
  expect(contract.check(exchange())).toEqual({ pair: 'sendEmail 201', faults: [] });
});

test('each difference from the document is a fault', () => {
  expect(faultsOf({ url: '/api/v1/nothing' })).toContain('no such operation');
  expect(faultsOf({ method: 'PUT' })).toContain('no such operation');
  expect(faultsOf({ status: 202 })).toContain('does not declare this status');
  expect(faultsOf({ body: { ...sent, more: 1 } })).toContain('additional properties');
  expect(faultsOf({ body: { object: 'EmailSent' } })).toContain('required');
  expect(faultsOf({ headers: { 'content-type': 'application/json' } })).toContain('x-request-id is missing');
  expect(faultsOf({ headers: { ...headers, 'x-ratelimit-limit': '1.5' } })).toContain('x-ratelimit-limit does not fit');
  expect(faultsOf({ headers: { ...headers, 'retry-after': '1' } })).toContain('retry-after is not declared');
  expect(faultsOf({ headers: { ...headers, 'content-type': 'text/plain' } })).toContain('media type text/plain');
  expect(faultsOf({ request: { ...email, to: [] } })).toContain('request: /to');
  expect(faultsOf({ url: '/api/v1/emails?x=1' })).toContain('query parameter x');
});

test('an error has one of the types of its status', () => {
  const problem = { title: 'x', type: 'errors/conflict', status: 404, req_id: 'r1' };
  expect(faultsOf({ status: 404, body: problem })).toContain('/type');
  expect(faultsOf({ status: 404, body: { ...problem, type: 'errors/resource_not_found' } })).toBe('');
});

test('what is outside of the API is not judged', () => {
  expect(contract.check(exchange({ url: '/auth/l/x', status: 302 }))).toEqual({ pair: undefined, faults: [] });
});
