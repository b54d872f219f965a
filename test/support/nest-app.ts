import { type LoggerService, Module, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterFile } from 'headgate-testbed/after-file';
import { readAhead } from '../../src/adapters/nest.ts';

export type Platform = 'express' | 'fastify';
export const PLATFORMS: readonly Platform[] = ['express', 'fastify'];

/**
 * Applies decorators to a method. By hand, because this repository is not compiled with the kind of decorators that Nest
 * uses.
 */
export function decorate(type: new () => object, method: string, ...decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method) as PropertyDescriptor;
  for (const one of decorators) one(type.prototype, method, descriptor);
}

/** Starts an application of Nest on a free port, with Nest's own body parsers. Returns its URL. */
export async function startNest(
  platform: Platform,
  metadata: ModuleMetadata,
  logger: false | LoggerService = false,
): Promise<string> {
  class App {}
  Module(metadata)(App);
  const options = { logger, forceCloseConnections: true };
  const app =
    platform === 'express'
      ? await NestFactory.create<NestExpressApplication>(App, new ExpressAdapter(), options)
      : await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), options);
  app.use(readAhead());
  await app.listen(0, '127.0.0.1');
  afterFile(() => app.close());
  return app.getUrl();
}
