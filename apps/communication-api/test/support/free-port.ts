import { freePort as freeNumber } from 'headgate-testbed/redis-server';

/** A free port for a service that must know its address before it starts. The system does not assign it by itself. */
export const freePort = async (): Promise<string> => String(await freeNumber());
