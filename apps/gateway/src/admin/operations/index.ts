import { z } from 'zod';
import { createDocument, type DocumentedApi, errorOf, probe } from '../../api/openapi.ts';
import { type Operation, operation } from '../../api/operation.ts';
import type { AdminContext } from '../context.ts';
import { accountOperations } from './accounts.ts';
import { blockOperations } from './blocks.ts';
import { claimOperations } from './claims.ts';
import { drainOperations } from './drain.ts';
import { eventOperations } from './events.ts';
import { fleetOperations } from './fleet.ts';
import { limitOperations } from './limits.ts';
import { shadowOperations } from './shadow.ts';
import { statusOperations } from './status.ts';
import { trafficOperations } from './traffic.ts';
import { windowOperations } from './windows.ts';

/** The table of requests. */
export function operationsOf(context: AdminContext): Operation[] {
  const operations = [
    ...statusOperations(context),
    ...limitOperations(context),
    ...fleetOperations(context),
    ...accountOperations(context),
    ...windowOperations(context),
    ...blockOperations(context),
    ...trafficOperations(context),
    ...eventOperations(context),
    ...shadowOperations(context),
    ...claimOperations(context),
    ...drainOperations(context),
  ];
  let document: Record<string, unknown> | undefined;
  operations.push(
    operation({
      id: 'getDocument',
      method: 'GET',
      path: '/v1/openapi.json',
      role: 'none',
      tag: 'Process',
      summary: 'This document',
      answer: z.record(z.string(), z.unknown()),
      run() {
        document ??= createDocument(operations, API);
        return document;
      },
    }),
  );
  return operations;
}

const API: DocumentedApi = {
  title: 'headgate Admin API',
  description:
    'Shows and changes what a running gateway does. Every request needs a token of `admin.tokens` in its config. Moments are in ISO 8601 and UTC; spans have their unit in their names.',
  securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
  security: [{ token: [] }],
  paths: {
    '/metrics': probe(
      'getMetrics',
      'The metrics for Prometheus',
      { 'text/plain': { schema: { type: 'string' } } },
      { 500: errorOf(500) },
    ),
  },
};
