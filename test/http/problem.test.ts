import { expect, expectTypeOf, it } from 'vitest';
import { createProblem, type ErrorType, problemReply, type WithErrorTypes } from '../../src/http/index.ts';

it('an error object has the documented fields, and its status is the HTTP status', () => {
  const reply = problemReply(createProblem(404, 'errors/resource_not_found', 'No such route.', 'req-1'), {
    'x-a': 'b',
  });
  expect(reply.status).toBe(404);
  expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'x-a': 'b' });
  expect(JSON.parse(reply.body)).toEqual({
    title: 'Not found',
    detail: 'No such route.',
    type: 'errors/resource_not_found',
    status: 404,
    req_id: 'req-1',
  });
});

it('an error object has its length in bytes, and no fields that were not given', () => {
  const reply = problemReply(createProblem(500, 'errors/unexpected_error', 'ü'), {}, 'application/problem+json');
  expect(reply.headers['content-length']).toBe(String(Buffer.byteLength(reply.body)));
  expect(reply.headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(problemReply(createProblem(504, 'errors/request_timeout')).body)).toEqual({
    title: 'Request timeout',
    type: 'errors/request_timeout',
    status: 504,
  });
});

it('an error object does not compile with a type of another status', () => {
  expectTypeOf<'api/too_many_requests'>().toExtend<ErrorType<429>>();
  expectTypeOf<'errors/conflict'>().not.toExtend<ErrorType<429>>();
  // @ts-expect-error a 409 type on a 404
  createProblem(404, 'errors/conflict');
  // @ts-expect-error a type that headgate does not produce
  createProblem(422, 'errors/invalid_recipient');
});

it('is open to the types of an application, still one pair of status and type at a time', () => {
  type MyErrors = WithErrorTypes<{ 402: 'billing/card_declined'; 422: 'errors/invalid_recipient' }>;
  expect(createProblem<MyErrors>(402, 'billing/card_declined')).toMatchObject({
    status: 402,
    title: 'Payment required',
  });
  expect(createProblem<MyErrors>(422, 'errors/invalid_recipient', 'to[1]', 'req-1')).toEqual({
    title: 'Unprocessable entity',
    detail: 'to[1]',
    type: 'errors/invalid_recipient',
    status: 422,
    req_id: 'req-1',
  });
  createProblem<MyErrors>(422, 'errors/unprocessable_entity');
  // @ts-expect-error a 422 type on a 402
  createProblem<MyErrors>(402, 'errors/invalid_recipient');
  // @ts-expect-error a status that is in neither table
  createProblem<MyErrors>(418, 'errors/invalid_recipient');
  type Teapot = WithErrorTypes<{ 418: 'kitchen/teapot' }>;
  expect(problemReply(createProblem<Teapot>(418, 'kitchen/teapot')).body).toContain('"title":"Request failed"');
});
