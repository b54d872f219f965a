import { expect, test } from 'vitest';
import type { Exchange } from '../../support/exchanges.ts';
import { GraphContract } from '../../support/graph/contract.ts';

const contract = new GraphContract();
const JSON_TYPE = { 'content-type': 'application/json' };

/** An exchange that Microsoft describes, with what is given replaced. */
const exchange = (given: Partial<Exchange> & { readonly json?: unknown; readonly answer?: unknown }): Exchange => {
  const { json, answer, ...rest } = given;
  return {
    method: 'POST',
    url: '/v1.0/me/messages',
    requestHeaders: JSON_TYPE,
    requestBody: Buffer.from(json === undefined ? '' : JSON.stringify(json)),
    status: 201,
    headers: new Map(answer === undefined ? [] : Object.entries(JSON_TYPE)),
    body: Buffer.from(answer === undefined ? '' : JSON.stringify(answer)),
    ...rest,
  };
};

const MESSAGE = { id: 'AAMk', isDraft: true, from: { emailAddress: { address: 'a@b.example' } } };
const FILE = { '@odata.type': '#microsoft.graph.fileAttachment', name: 'a.txt', contentBytes: 'YQ==' };
const ATTACHMENTS = '/v1.0/me/messages/AAMk/attachments';
const MESSAGES = '/v1.0/me/messages/AAMk';

test.each<[string, Exchange, string]>([
  ['a JSON draft', exchange({ json: { subject: 'a' }, answer: MESSAGE }), 'me.CreateMessages'],
  [
    'a MIME draft',
    exchange({ requestHeaders: { 'content-type': 'text/plain' }, requestBody: Buffer.from('YWI='), answer: MESSAGE }),
    'me.CreateMessages',
  ],
  ['a file', exchange({ url: ATTACHMENTS, json: FILE, answer: FILE }), 'me.messages.CreateAttachments'],
  [
    'a send by its short name',
    exchange({ url: `${MESSAGES}/send`, requestHeaders: {}, status: 202 }),
    'me.messages.message.send',
  ],
  [
    'a send by its full name',
    exchange({ url: `${MESSAGES}/microsoft.graph.send`, requestHeaders: {}, status: 204 }),
    'me.messages.message.send',
  ],
  [
    'chosen properties',
    exchange({ method: 'GET', url: `${MESSAGES}?$select=id,isDraft`, status: 200, answer: MESSAGE }),
    'me.GetMessages',
  ],
  [
    'an error',
    exchange({ json: {}, status: 404, answer: { error: { code: 'ErrorItemNotFound', message: 'no' } } }),
    'me.CreateMessages',
  ],
])('as Microsoft describes it: %s', (_, given, operation) => {
  expect(contract.check(given)).toEqual({ operation, faults: [] });
});

test.each<[string, Exchange, RegExp]>([
  ['an unknown operation', exchange({ url: '/v1.0/me/mesages', json: {} }), /no such operation/],
  ['an unknown property', exchange({ json: { subjct: 'a' }, answer: MESSAGE }), /request body.*subjct/],
  [
    'an unknown property deep inside',
    exchange({ json: { from: { emailAddress: { adress: 'a' } } }, answer: MESSAGE }),
    /request body \/from.*adress/,
  ],
  ['another type', exchange({ json: { subject: 1 }, answer: MESSAGE }), /\/subject: must be string/],
  ['a file without its type', exchange({ url: ATTACHMENTS, json: { name: 'a' }, answer: FILE }), /@odata.type/],
  [
    'content that is not base64',
    exchange({ url: ATTACHMENTS, json: { ...FILE, contentBytes: '_-' }, answer: FILE }),
    /base64url/,
  ],
  [
    'MIME that is not base64',
    exchange({ requestHeaders: { 'content-type': 'text/plain' }, requestBody: Buffer.from('a b'), answer: MESSAGE }),
    /not base64/,
  ],
  [
    'MIME for a file',
    exchange({ url: ATTACHMENTS, requestHeaders: { 'content-type': 'text/plain' }, answer: FILE }),
    /media type text\/plain/,
  ],
  [
    'an unknown choice',
    exchange({ method: 'GET', url: `${MESSAGES}?$select=sent`, status: 200, answer: MESSAGE }),
    /\$select/,
  ],
  [
    'an unknown parameter',
    exchange({ method: 'GET', url: `${MESSAGES}?$expand=x`, status: 200, answer: MESSAGE }),
    /\$expand is not declared/,
  ],
  [
    'an unknown header',
    exchange({ requestHeaders: { ...JSON_TYPE, 'x-mine': '1' }, json: {}, answer: MESSAGE }),
    /x-mine/,
  ],
  [
    'a body of a send',
    exchange({ url: `${MESSAGES}/send`, json: {}, status: 202 }),
    /the request must not contain a body/,
  ],
  [
    'another status of a send',
    exchange({ url: `${MESSAGES}/send`, requestHeaders: {}, status: 200 }),
    /status is not declared/,
  ],
  [
    'an answer of another form',
    exchange({ json: {}, answer: { ...MESSAGE, isDraft: 'yes' } }),
    /response body \/isDraft/,
  ],
  ['an answer without JSON', exchange({ json: {} }), /not JSON/],
  ['an error of another form', exchange({ json: {}, status: 400, answer: { error: 'no' } }), /response body \/error/],
])('not as Microsoft describes it: %s', (_, given, fault) => {
  expect(contract.check(given).faults.join('\n')).toMatch(fault);
});
