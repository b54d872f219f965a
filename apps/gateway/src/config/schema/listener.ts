import { z } from 'zod';
import { name } from './values.ts';

const port = z.int().min(0).max(65_535);

/** A checked config contains the content of the files in place of their names. */
const tls = z.strictObject({
  cert: name.describe("File with the certificate and its intermediates, in PEM, relative to the config's folder"),
  key: name.describe('File with the private key of the certificate, in PEM, without a passphrase'),
  clientCa: name
    .optional()
    .describe('File with certificate authorities, in PEM. With it, each client must have a certificate of one of them'),
  minVersion: z.enum(['1.2', '1.3']).default('1.2').describe('Oldest version of TLS that is accepted'),
});

/** `listen` or `admin` of the config. */
export const listener = (defaultPort: number) =>
  z.strictObject({
    host: name.default('127.0.0.1').describe('Address to listen on'),
    port: port.default(defaultPort).describe('0 takes any free port; the log has its number'),
    tls: tls.optional().describe('Serves HTTPS. Without it the listener serves HTTP'),
  });
