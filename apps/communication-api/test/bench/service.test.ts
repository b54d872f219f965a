import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../../bench/${file}.mjs`, import.meta.url).href);
const { loadedBy } = await load('support/service-pages');
const { startMailSinks } = await load('support/mail-sinks');
const { startedProcess } = await load('support/started-process');
const { quantile } = await import('headgate-bench/statistics' as string);
const start = await load('topics/service-start');
const dashboard = await load('topics/service-dashboard');
const delivery = await load('topics/service-delivery');

const ORIGIN = 'http://127.0.0.1:8080';

describe('what a page loads', () => {
  it('is its stylesheets, scripts and images, each once; links are not followed', () => {
    const page = `<link rel="stylesheet" href="/a.css"><script src="/b.js"></script><script src="/b.js"></script>
      <img src="data:image/png;base64,AA=="><a href="https://example.com/">elsewhere</a>`;
    expect(loadedBy(page, ORIGIN)).toEqual({ own: ['/a.css', '/b.js'], elsewhere: [] });
  });

  it('counts requests to other origins, also those of a stylesheet', () => {
    const page = '<img src="https://images.example/x.png"><link rel="stylesheet" href="//fonts.example/f.css">';
    expect(loadedBy(page, ORIGIN).elsewhere).toEqual(['https://images.example/x.png', 'http://fonts.example/f.css']);
    const style = '@import "https://fonts.example/g.css"; p { background: url(/own.png) }';
    expect(loadedBy(style, ORIGIN)).toEqual({ own: ['/own.png'], elsewhere: ['https://fonts.example/g.css'] });
  });
});

describe('the mail servers', () => {
  it('say when so many emails and copies have arrived, and count anew from then on', async () => {
    const { ports, until } = await startMailSinks();
    const began = performance.timeOrigin + performance.now();
    await talk(ports.smtpPort, 'EHLO a\r\nDATA\r\nSubject: x\r\n\r\nfirst\r\n.\r\nDATA\r\nsecond\r\n.\r\n', 5);
    await talk(ports.imapPort, 'a APPEND Sent {5}\r\nhello\r\n', 1);
    const arrived = await until({ delivered: 2, filed: 1 });
    expect(arrived).toMatchObject({ delivered: 2, filed: 1 });
    expect(arrived.deliveredAt).toBeGreaterThanOrEqual(began);
    expect(await until({ delivered: 0, filed: 0 })).toMatchObject({ delivered: 0, filed: 0 });
  });
});

describe('a process that is started', () => {
  it('is measured when it has printed its banner', async () => {
    const program = `console.log('ready'); process.on('SIGTERM', () => process.exit()); setInterval(() => {}, 1000)`;
    const { bannerMs, rss, peakRss, stop } = await startedProcess(['-e', program], { banner: 'ready' });
    await stop();
    expect(bannerMs).toBeGreaterThan(0);
    expect(rss).toBeGreaterThan(1_000_000);
    expect(peakRss).toBeGreaterThanOrEqual(rss);
  });

  it('fails with its output if it ends', async () => {
    const failing = startedProcess(['-e', 'console.error("no disk"); process.exit(3)'], { banner: 'ready' });
    await expect(failing).rejects.toThrow(/ended with code 3: no disk/);
  });
});

describe('the topics about the service', () => {
  const rounds = 4;
  const repeat = (figure: object) => Array.from({ length: rounds }, () => figure);
  const met = (report: { targets: { what: string; met: boolean }[] }) =>
    Object.fromEntries(report.targets.map(({ what, met: isMet }) => [what, isMet]));

  it('service-start: judge the second start of the embedded database', () => {
    const figure = { bannerMs: 3_100, answerMs: 3_200, cpuMs: 2_500, rssMb: 400, peakMb: 420 };
    const figures = { start: { 'embedded, second time': repeat(figure) } };
    expect(met(start.report({ rounds, figures }))).toEqual({
      'embedded, second time: ms until the banner': false,
      'embedded, second time: MB': true,
    });
  });

  it('service-dashboard: judge the time, the size and the origins of each page', () => {
    const figure = { medianMs: 4, p99Ms: 9, cpuMs: 3, bytes: 31_000, elsewhere: 0 };
    const report = dashboard.report({ rounds, seconds: 1, figures: { 'a page': { embedded: repeat(figure) } } });
    expect(met(report)).toEqual({
      'embedded, a page: ms of 99 %': true,
      'embedded, a page: bytes': false,
      'embedded, a page: requests to elsewhere': true,
    });
    expect(quantile([5, 1, 4, 2, 3], 0.5)).toBe(3);
  });

  it('service-delivery: name the peer that was not measured, and the reason', () => {
    const figure = { perSecond: 100, acceptedPerSecond: 120, cpuMs: 2, serversCpuMs: 1, mb: 90, serversMb: 50 };
    const figures = { delivery: { 'BullMQ + nodemailer': repeat(figure) } };
    const { markdown } = delivery.report({ rounds, emails: 400, connections: 10, figures });
    expect(markdown).toMatch(/\| EmailEngine 2\.79\.2 +\| +not measured \|/);
    expect(markdown).toContain('`npm view emailengine-app` answers 404');
  });
});

/** Says something to a mail server, and waits for so many lines after its greeting. */
async function talk(port: number, text: string, lines: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.setEncoding('latin1').on('data', (data) => {
    answer += data;
  });
  await once(socket, 'data');
  socket.write(text);
  while (answer.split('\r\n').length - 1 < lines + 1) await once(socket, 'data');
  socket.destroy();
}
