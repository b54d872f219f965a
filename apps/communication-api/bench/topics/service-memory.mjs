// The service in apps/communication-api: how much memory ten large emails need that arrive at once.
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { bar, createCells } from 'headgate-bench/cells';
import { inRounds } from 'headgate-bench/rounds';
import { table } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import {
  BARE,
  EMBEDDED,
  SERVERS,
  SMTP_EMBEDDED,
  SMTP_SERVERS,
  SMTP_WITHOUT_COPIES,
  startServices,
} from '../support/service-fleet.mjs';
import { requestBytes, sendAll } from '../support/service-load.mjs';

const AT_ONCE = 10;
/** The largest body that the service accepts by default. */
const BODY_BYTES = 26_214_400;
const MIB = 1_048_576;
/** So long the filing of the copies is watched. */
const COPIES_MS = 5_000;
const MOST_ABOVE_IDLE_MB = 120;
const WORKLOAD = `${AT_ONCE} emails`;
const NAMES = [BARE, EMBEDDED, SERVERS, SMTP_EMBEDDED, SMTP_SERVERS, SMTP_WITHOUT_COPIES];

export async function measure({ quick, profile, progress, rounds = quick ? 1 : 3 }) {
  let versions;
  const run = async ({ name }, _, isWarmUp) => {
    // Every run has a fresh process, so there is nothing to warm up.
    if (isWarmUp) return undefined;
    const started = await startServices([name], { profile });
    ({ versions } = { ...started, versions: { ...versions, ...started.versions } });
    try {
      return await measureMember(started.members[name]);
    } finally {
      await started.stop();
    }
  };
  const workload = { name: WORKLOAD, contestants: NAMES.map((name) => ({ name })) };
  const figures = await inRounds({ rounds, workloads: [workload], progress, measure: run });
  return { versions, rounds, figures };
}

async function measureMember({ port, token, accounts, ask }) {
  // Each by another account: one account has few connections to its mail server.
  const email = (bytes, index = 0) => emailWithFile(token, accounts[index % accounts.length], bytes);
  // The first email loads code that later ones need as well.
  await sendAll(port, [[email(1_000)]]);
  await ask('forget the peak');
  const idle = await ask('figures');
  const { seconds } = await sendAll(
    port,
    Array.from({ length: AT_ONCE }, (_, index) => [email(BODY_BYTES, index)]),
  );
  // After the answers, the copies are filed.
  await wait(COPIES_MS);
  const { peakRss } = await ask('figures');
  return { idleMib: idle.rss / MIB, aboveMib: (peakRss - idle.rss) / MIB, seconds };
}

/** A form with a file. @param size length of the body in bytes */
function emailWithFile(token, account, size) {
  const boundary = 'the-end-of-a-part';
  const part = (more, value) => `--${boundary}\r\ncontent-disposition: form-data; ${more}\r\n\r\n${value}`;
  const head = [
    part('name="account_id"', `${account}\r\n`),
    part('name="to"', '[{"identifier":"ann@example.com"}]\r\n'),
    part('name="body"', '<p>The file that you have asked for.</p>\r\n'),
    part('name="attachments"; filename="file.bin"', ''),
  ].join('');
  const tail = `\r\n--${boundary}--\r\n`;
  const file = Buffer.alloc(Math.max(1, size - head.length - tail.length), 'bytes of a file ');
  const headers = {
    'x-api-key': token,
    'idempotency-key': randomUUID(),
    'content-type': `multipart/form-data; boundary=${boundary}`,
  };
  return requestBytes('/api/v1/emails', headers, Buffer.concat([Buffer.from(head), file, Buffer.from(tail)]));
}

export function report({ rounds, figures }) {
  const cells = createCells(figures);
  const show = ({ median, least, most }) => `${median.toFixed(0)} (${least.toFixed(0)}–${most.toFixed(0)})`;
  const names = Object.keys(figures[WORKLOAD]);
  return {
    title: 'The service: memory of large emails',
    markdown: `
${AT_ONCE} emails with an idempotency key and a file arrive at once, each a form of ${BODY_BYTES / MIB} MiB, the largest
that the service accepts by default. Resident memory of the process in MiB: before (*idle*, after one small email and a
garbage collection), and by how much its peak is above that until ${COPIES_MS / 1_000} seconds after the answers. Each
email is sent by an account of its own: of the mock provider, or (*SMTP*) to a mail server that keeps nothing, while the
copies are filed by IMAP, one at a time. Median (least–most) of ${rounds}
${rounds === 1 ? 'run' : 'runs'}, each in a fresh process. The floor is a Fastify route that reads the body and throws it
away.

${table(
  ['', 'idle', 'peak above idle', 'seconds until all are answered'],
  names.map((name) => [
    name === BARE ? name : `**${name}**`,
    ...['idleMib', 'aboveMib'].map((field) => show(cells.spread(field, WORKLOAD, name))),
    cells.figure('seconds', WORKLOAD, name).toFixed(1),
  ]),
)}`,
    targets: NAMES.slice(1).flatMap((name) =>
      targetRow(`${name}: MiB above idle`, cells.spread('aboveMib', WORKLOAD, name), atMost(MOST_ABOVE_IDLE_MB), show),
    ),
    chart: {
      title: `${WORKLOAD} of ${BODY_BYTES / MIB} MiB at once: memory above idle`,
      unit: 'MiB',
      scale: 'linear',
      better: 'less',
      panels: [
        {
          title: '',
          bars: names.flatMap((name) =>
            bar(name, name === BARE ? 'floor' : 'ours', cells.spread('aboveMib', WORKLOAD, name)),
          ),
        },
      ],
    },
  };
}
