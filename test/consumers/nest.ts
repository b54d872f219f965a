// Nest on Express: Fastify is not installed. Nest needs its own kind of decorators, and so its own compiler options.
import { Controller, Get, Module, UseInterceptors } from '@nestjs/common';
import type { Request } from 'express';
import { createGate, createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import {
  Headgate,
  HeadgateGuard,
  HeadgateInterceptor,
  HeadgateModule,
  idempotentRequest,
  type NestRequest,
  readAhead,
  routeOf,
  SkipHeadgate,
} from 'headgate/nest';

const gate = createGate<NestRequest>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (request) => request.headers['x-account']?.toString(),
  route: routeOf,
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});

@Controller()
@Headgate({ cost: 2 })
class Things {
  @Get('chats/:id')
  @SkipHeadgate()
  @UseInterceptors(new HeadgateInterceptor(gate))
  chat(): string {
    return 'chat';
  }
}

@Module({
  imports: [HeadgateModule.forRoot({ perAddress: ['100/1m'] }), HeadgateModule.forRoot(gate)],
  controllers: [Things],
  providers: [{ provide: HeadgateGuard, useValue: 1 }],
})
export class App {}

export const before = readAhead({ maxBytes: 1_000 });
export const asGuard = HeadgateModule.forRoot(gate, { as: 'guard' });
// @ts-expect-error the places of a gate are checked
export const misplaced = HeadgateModule.forRoot(gate, { as: 'pipe' });
// @ts-expect-error options of a route are checked
export const wrong = Headgate({ price: 2 });
// @ts-expect-error a request is checked as well: it is not `any`
createGate<NestRequest>({ account: (request) => request.nothing });
export const request = (of: Request): NestRequest => of;
export const address = (of: NestRequest): string | undefined => (of as Request).ip;
