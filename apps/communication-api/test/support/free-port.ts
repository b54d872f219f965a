import { freePort as freeNumber } from '../../../../test/support/redis-server.ts';

/** A port that is free now, for a service whose own address must be known before it starts. The system does not assign it by itself. */
export const freePort = async (): Promise<string> => String(await freeNumber());
