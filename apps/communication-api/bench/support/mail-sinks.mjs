import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

const LOOK_MS = 5;

/**
 * Mail servers that take everything and keep nothing, so that the figures are those of the sender: one for SMTP, with
 * the usual extensions and a login, and one for IMAP with an empty folder `Sent`.
 * @returns `ports`, and `until({ delivered, filed, delayMs })`: waits for so many emails by SMTP, and so many copies by IMAP,
 *   since it resolved before. It resolves with the counts, and with when the last of each has arrived, in milliseconds since
 *   1970. From then on, each answer by SMTP comes so much later; default: at once.
 */
export async function startMailSinks() {
  const arrived = { delivered: [0, 0], filed: [0, 0] };
  const count = (what) => () => {
    arrived[what] = [arrived[what][0] + 1, performance.timeOrigin + performance.now()];
  };
  let delay = 0;
  const smtpPort = await listen((socket) => talkSmtp(socket, count('delivered'), () => delay));
  const imapPort = await listen((socket) => talkImap(socket, count('filed')));
  return {
    ports: { smtpPort, imapPort },
    async until({ delayMs = 0, ...wanted }) {
      while (Object.entries(wanted).some(([what, times]) => arrived[what][0] < times)) await wait(LOOK_MS);
      delay = delayMs;
      const { delivered, filed } = arrived;
      Object.assign(arrived, { delivered: [0, 0], filed: [0, 0] });
      return { delivered: delivered[0], deliveredAt: delivered[1], filed: filed[0], filedAt: filed[1] };
    },
  };
}

async function listen(talk) {
  const server = createServer((socket) => {
    socket.setNoDelay().on('error', () => socket.destroy());
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

const END = Buffer.from('\r\n.\r\n');
const SMTP_ANSWERS = {
  EHLO: '250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 AUTH PLAIN',
  AUTH: '235 Ok',
  DATA: '354 Go on',
  QUIT: '221 Bye',
};

function talkSmtp(socket, onDelivered, delayMs) {
  let isMessage = false;
  const say = (text) => {
    const write = () => socket.write(`${text}\r\n`);
    // Two timers of the same length end in their order.
    if (delayMs() > 0) setTimeout(write, delayMs());
    else write();
  };
  say('220 sink ESMTP');
  read(socket, {
    end: () => (isMessage ? END : LINE),
    // Of a message, only its end is looked for.
    isSkipped: () => isMessage,
    take(line) {
      const verb = line.slice(0, 4).toUpperCase();
      if (isMessage) onDelivered();
      say(isMessage ? '250 Ok: queued' : (SMTP_ANSWERS[verb] ?? '250 Ok'));
      isMessage = !isMessage && verb === 'DATA';
      if (verb === 'QUIT') socket.end();
    },
  });
}

const LINE = Buffer.from('\r\n');

/** Calls `take` for each piece of the input, which ends with `end()`. */
function read(socket, { end, isSkipped, take }) {
  let rest = Buffer.alloc(0);
  socket.on('data', (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    for (let at = rest.indexOf(end()); at !== -1; at = rest.indexOf(end())) {
      const line = isSkipped() ? '' : rest.toString('latin1', 0, at);
      rest = rest.subarray(at + end().length);
      take(line);
    }
    if (isSkipped()) rest = rest.subarray(-(END.length - 1));
  });
}

const SELECTED = ['* 0 EXISTS', '* 0 RECENT', '* FLAGS (\\Seen)', '* OK [UIDVALIDITY 1] Ok', '* OK [UIDNEXT 1] Ok'];
const IMAP_ANSWERS = {
  CAPABILITY: ['* CAPABILITY IMAP4rev1 SPECIAL-USE'],
  LIST: ['* LIST (\\HasNoChildren) "/" INBOX', '* LIST (\\HasNoChildren \\Sent) "/" Sent'],
  LSUB: [],
  SELECT: SELECTED,
  EXAMINE: SELECTED,
  SEARCH: ['* SEARCH'],
  LOGOUT: ['* BYE Bye'],
};

function talkImap(socket, onFiled) {
  let literal = 0;
  let rest = Buffer.alloc(0);
  let command = '';
  socket.write('* OK [CAPABILITY IMAP4rev1 SPECIAL-USE] Ready\r\n');
  const answer = () => {
    const [tag, first = '', second = ''] = command.split(' ');
    const verb = (first.toUpperCase() === 'UID' ? second : first).toUpperCase();
    command = '';
    if (verb === 'APPEND') onFiled();
    socket.write([...(IMAP_ANSWERS[verb] ?? []), `${tag} OK Done\r\n`].join('\r\n'));
  };
  socket.on('data', (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    for (;;) {
      const skipped = Math.min(literal, rest.length);
      literal -= skipped;
      rest = rest.subarray(skipped);
      const end = literal > 0 ? -1 : rest.indexOf('\r\n');
      if (end === -1) return;
      const line = rest.toString('latin1', 0, end);
      rest = rest.subarray(end + 2);
      command += line;
      const [, size] = /\{(\d+)\}$/.exec(line) ?? [];
      if (size === undefined) answer();
      else {
        literal = Number(size);
        socket.write('+ Go on\r\n');
      }
    }
  });
}
