import type { Demonstration } from './demonstration.ts';

const HOUR_MS = 3_600_000;

/** The facts about a start that the banner shows. */
export interface BannerFacts {
  /** Origin that the process listens on; undefined: it answers no requests. */
  readonly url: string | undefined;
  /** Origin that browsers use. */
  readonly publicUrl: string;
  /** Origin of the health checks and the metrics, if the process serves them. */
  readonly adminUrl: string | undefined;
  /** Directory of the embedded database; undefined with DATABASE_URL. */
  readonly directory: string | undefined;
  /** Whether `master.key` is in that directory. */
  readonly hasKeyFile: boolean;
  /** Only on the first start. */
  readonly demonstration: Demonstration | undefined;
  /** Whether any application exists. */
  readonly hasApplication: boolean;
  readonly nowMs: number;
  /** How this program is called, as `npm start --`. */
  readonly program: string;
  /** The link for the first owner of the dashboard; undefined: there is an owner. */
  readonly setUpLink: string | undefined;
}

/** The text that the start prints. */
export function banner({
  url,
  adminUrl,
  directory,
  hasKeyFile,
  demonstration,
  hasApplication,
  nowMs,
  program,
  publicUrl,
  setUpLink,
}: BannerFacts): string {
  const head = [
    url === undefined
      ? 'communication-api  worker: it answers no requests'
      : `communication-api  ${url}     docs ${url}/docs     dashboard ${publicUrl}/dashboard`,
    ...(adminUrl === undefined ? [] : [`health checks and metrics  ${adminUrl}/readyz  ${adminUrl}/metrics`]),
    directory === undefined
      ? 'data on the server of DATABASE_URL'
      : `data in ${directory} (embedded PostgreSQL, for one small host: see apps/communication-api/docs/README.md)`,
    ...(demonstration !== undefined && hasKeyFile
      ? [`Back up ${directory}/master.key: without it, the credentials in the database cannot be read.`]
      : []),
  ];
  const setUp =
    setUpLink === undefined
      ? []
      : ['  Set up your login to the dashboard (once, within an hour):', `  ${setUpLink}`, ''];
  const rest =
    demonstration === undefined || url === undefined
      ? [keyAdvice(hasApplication, program, directory !== undefined)]
      : tryIt(url, demonstration, new Date(nowMs + HOUR_MS));
  return `\n${head.join('\n')}\n\n${[...setUp, ...rest].join('\n')}\n\n`;
}

function keyAdvice(hasApplication: boolean, program: string, isEmbedded: boolean): string {
  const first = isEmbedded ? 'stop the service, then run' : 'run';
  return hasApplication
    ? `Another API key: ${first} "${program} create-key".`
    : `There is no application yet: ${first} "${program} create-key --application NAME", which makes its first API key.`;
}

function tryIt(url: string, { token, accountId }: Demonstration, linkEnds: Date): readonly string[] {
  const link = { providers: 'mock', redirect_uri: `${url}/docs/`, expires_on: linkEnds.toISOString() };
  return [
    `  API key of the demonstration application (shown once)   ${token}`,
    `  A mock mailbox is linked: ${accountId}`,
    '',
    'Try: send an email',
    `  curl -F account_id=${accountId} -F 'to=[{"identifier":"ann@mock.test"}]' -F subject=Hi --form-string 'body=<p>Hello</p>' \\`,
    `    -H 'X-API-KEY: ${token}' -H 'Idempotency-Key: first' ${url}/api/v1/emails`,
    '  Twice: sent once.   Without the Idempotency-Key, 11 times in a minute: 429.',
    'Try: link a mailbox, then open the link',
    `  curl -H 'X-API-KEY: ${token}' -H 'content-type: application/json' \\`,
    `    -d '${JSON.stringify(link)}' ${url}/v2/auth/link`,
  ];
}
