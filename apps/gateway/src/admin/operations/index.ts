import { z } from 'zod';
import type { AdminContext } from '../context.ts';
import { createDocument } from '../openapi.ts';
import { type Operation, operation } from '../operation.ts';
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
        document ??= createDocument(operations);
        return document;
      },
    }),
  );
  return operations;
}
