import { type DestinationStream, type Logger, pino } from 'pino';

const TOKEN = /\bck_([a-z]{3})_[0-9A-Za-z_]+/g;

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
export const createLog = (level: string, destination?: DestinationStream): Logger =>
  pino(
    { level, serializers: { err: shownError }, hooks: { streamWrite: (text) => text.replace(TOKEN, 'ck_$1_…') } },
    destination as DestinationStream,
  );
