import { type DestinationStream, type Logger, pino } from 'pino';

const TOKEN = /\bck_([a-z]{3})_[0-9A-Za-z_]+/g;

const FLUSH_MS = 100;

const { err: standardError } = pino.stdSerializers;

/**
 * The parts of an error that are logged. Libraries attach whole connections to their errors, including their secrets.
 */
function shownError(error: Error): object {
  const { type, message, stack, code } = standardError(error);
  return { type, message, stack, ...(code === undefined ? {} : { code }) };
}

/**
 * The log of a process: JSON lines on standard output. Tokens of API keys are replaced by their first letters, in every
 * field.
 * @param level lowest level that is logged
 */
export const createLog = (level: string, destination: DestinationStream = standardOutput()): Logger =>
  pino(
    { level, serializers: { err: shownError }, hooks: { streamWrite: (text) => text.replace(TOKEN, 'ck_$1_…') } },
    destination,
  );

/** Lines are written together: a write per request would cost a twentieth of a send. The end of the process writes the rest. */
const standardOutput = (): DestinationStream =>
  pino.destination({ dest: 1, sync: false, minLength: 4_096, periodicFlush: FLUSH_MS });
