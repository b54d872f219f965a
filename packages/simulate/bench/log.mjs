// How much memory and CPU a simulation takes for a long log, with two policies:
//   npm run bench -w packages/simulate -- [--lines 10000000] [--accounts 10000] [--format headgate|combined]
// The log is made line by line while it is read, so it needs no room on a disk.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cpuMicrosOf, peakRss } from 'headgate-bench/process-figures';

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '10000000' },
    accounts: { type: 'string', default: '10000' },
    format: { type: 'string', default: 'headgate' },
  },
});
const [lines, accounts] = [Number(values.lines), Number(values.accounts)];
const LINES_PER_CHUNK = 1_000;
const FIRST = Date.UTC(2026, 0, 1);
const POLL_MS = 50;

/** 100 requests per second. */
const timeOf = (i) => FIRST + i * 10;
const MONTH = 'Jan';
const two = (number) => String(number).padStart(2, '0');
const FORMATS = {
  headgate(i, account, route) {
    const at = timeOf(i);
    const [method, path] = route.split(' ');
    return `{"level":30,"time":"${new Date(at).toISOString()}","req_id":"${i}","method":"${method}","route":"${route}","path":"${path}","account":"${account}","provider":"mock","cost":1,"at":${at},"order":${i},"status":200,"ms":1.234,"decision":"accepted","msg":"request"}\n`;
  },
  combined(i, account, route) {
    const time = new Date(timeOf(i));
    const clock = [time.getUTCHours(), time.getUTCMinutes(), time.getUTCSeconds()].map(two).join(':');
    return `10.0.0.1 - - [${two(time.getUTCDate())}/${MONTH}/2026:${clock} +0000] "${route}?account_id=${account}&x=1 HTTP/1.1" 200 512 "-" "curl/8.1 (x86_64)"\n`;
  },
};

const WORKER = fileURLToPath(new URL('log-worker.mjs', import.meta.url));
const child = spawn(process.execPath, [WORKER, values.format], { stdio: ['pipe', 'pipe', 'inherit'] });
let output = '';
child.stdout.setEncoding('utf8').on('data', (text) => {
  output += text;
});
const figures = { cpu: 0, rss: 0 };
const timer = setInterval(() => {
  try {
    figures.cpu = Math.max(figures.cpu, cpuMicrosOf([child.pid]));
    figures.rss = Math.max(figures.rss, peakRss(child.pid));
  } catch {
    // It has just ended.
  }
}, POLL_MS);
const write = FORMATS[values.format];
for (let i = 0; i < lines; ) {
  let chunk = '';
  for (let end = Math.min(lines, i + LINES_PER_CHUNK); i < end; i++) {
    // A few accounts have most of the requests.
    const account = `account_${Math.floor(accounts * ((i * 0.618_033_988_7) % 1) ** 3)}`;
    chunk += write(i, account, i % 3 === 0 ? 'POST /api/v1/emails' : 'GET /api/v1/chats');
  }
  if (!child.stdin.write(chunk)) await once(child.stdin, 'drain');
}
child.stdin.end();
await once(child, 'close');
clearInterval(timer);
const { requests, matrix } = JSON.parse(output);
console.log(JSON.stringify(matrix));
console.log(
  `${requests} requests of ${accounts} accounts: ${(figures.cpu / lines).toFixed(2)} µs of CPU per line (limit 8), at most ${Math.round(figures.rss / 1e6)} MB (limit 300)`,
);
