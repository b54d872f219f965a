import fc from 'fast-check';
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { encode } from '../playground/share.ts';
import { axeFaults, useSite, type Watched } from './support/browser.ts';
import { expectedRows } from './support/expected-rows.ts';
import { histories } from './support/histories.ts';

/** Goes to a link as a reader does, and reads the table of requests. */
const rowsOf = (page: Page, link: string): Promise<string[]> =>
  page.evaluate(async (hash) => {
    location.hash = hash;
    await new Promise((resolve) => addEventListener('hashchange', resolve, { once: true }));
    await new Promise((resolve) => setTimeout(resolve));
    return [...document.querySelectorAll('.playground tbody tr')].map((row) =>
      [...row.querySelectorAll('td')]
        .slice(2, 6)
        .map((cell) => cell.textContent)
        .join('|'),
    );
  }, link);

describe('the playground, in a browser', () => {
  const site = useSite();
  let watched: Watched;
  let page: Page;
  beforeEach(async () => {
    watched = await site.openPage();
    page = watched.page;
    await watched.open('/playground');
    await page.locator('.timeline').waitFor();
    return async () => {
      expect(await watched.faults()).toEqual([]);
      await page.context().close();
    };
  });

  const heading = (): Promise<string | null> => page.textContent('.answers h2');

  it('gives what a limiter in Node gives, for 200 random histories', async () => {
    let number = 0;
    await fc.assert(
      fc.asyncProperty(histories, async (state) => {
        // A link that is the same as the one before would not be an event.
        const link = `${encode(state)}`;
        expect(
          await rowsOf(page, ++number % 2 === 0 ? link : link.replace(/&t=/, '&t=').split('&').reverse().join('&')),
        ).toEqual(expectedRows(state));
      }),
      { numRuns: 200 },
    );
  });

  it('sends a request where one clicks, and moves time where one drags', async () => {
    await page.getByRole('button', { name: 'Clear' }).click();
    const box = await page.locator('.timeline svg').boundingBox();
    if (box === null) throw new Error('a timeline');
    const at = (part: number): number => box.x + 14 + (box.width - 28) * part;
    await page.mouse.click(at(0.5), box.y + 60);
    expect(await heading()).toBe('Request 1, at 30 s');
    await page.mouse.click(at(0.25), box.y + 60);
    expect(await heading()).toBe('Request 1, at 15 s');
    await page.mouse.move(at(0.25), box.y + 60);
    await page.mouse.down();
    await page.mouse.move(at(0.4), box.y + 60, { steps: 4 });
    await page.mouse.up();
    expect(await heading()).toBe('A request at 24 s would get');
    expect(await page.locator('.answers li').allTextContents()).toEqual([
      'All methods 3/10s: 1 of 3 used, ends in 1 s',
      'All methods 5/30s: 1 of 5 used, ends in 21 s',
    ]);
    await page.mouse.click(at(0.5), box.y + 66);
    expect(await heading()).toBe('Request 2, at 30 s');
  });

  it('works by keyboard alone', async () => {
    await page.getByRole('button', { name: 'Clear' }).press('Enter');
    const timeline = page.getByRole('slider', { name: 'Time' });
    await timeline.focus();
    for (let i = 0; i < 4; i++) await page.keyboard.press('Enter');
    expect(await heading()).toBe('Request 4, at 0 s');
    expect(await page.textContent('.answers .status')).toBe('429 Too Many Requests');
    expect(await timeline.getAttribute('aria-valuetext')).toBe(
      '0 s, request 4 rejected by All methods 3/10s; 3/10s: 3 used, 5/30s: 3 used',
    );
    await page.keyboard.press('PageUp');
    await page.keyboard.press('ArrowRight');
    expect(await heading()).toBe('A request at 2.2 s would get');
    await page.keyboard.press('Delete');
    await page.keyboard.press('Home');
    expect(await heading()).toBe('Request 3, at 0 s');
    await page.keyboard.press('End');
    expect(await page.textContent('.answers .status')).toBe('200 OK');
  });

  it('shows an error at its field, and keeps the timeline', async () => {
    const field = page.getByLabel('All methods');
    await field.fill('3/10s, 5/30');
    expect(await page.getByRole('alert').textContent()).toBe(
      'limits.allMethods[1]: a duration is a whole number and a unit of ms, s, m, h, d, such as "30s", got "30"',
    );
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    expect(await page.locator('.timeline .bar').count()).toBe(5);
    await field.fill('9/1m');
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.locator('.timeline .bar').count()).toBe(1);
  });

  it('compares with a candidate, and shares all of it by a link', async () => {
    await page.getByLabel('Compare with a candidate').check();
    await page.getByLabel('All methods').nth(1).fill('2/10s');
    const text = 'Of 8 requests, the candidate newly rejects 1 and newly accepts 0. A ring marks them.';
    expect(await page.textContent('.compared')).toBe(text);
    expect(await page.locator('.timeline .changed').count()).toBe(1);
    await page.getByRole('button', { name: 'Copy a link' }).click();
    const copy = await site.openPage();
    await copy.open(new URL(page.url()).pathname + new URL(page.url()).hash);
    expect(await copy.page.textContent('.compared')).toBe(text);
    expect(await copy.faults()).toEqual([]);
  });

  it('lets a pasted log pass the limits, and says what is wrong with its routes', async () => {
    await page.getByText('Try these limits on a log').click();
    await page.getByLabel('All methods').fill('3/1m');
    await page.getByRole('button', { name: 'Use a sample' }).click();
    await expect
      .poll(() => page.locator('.playground details [role=status] p').textContent())
      .toMatch(/Of 39 requests, these limits reject 12\./);
    await page.getByLabel('Routes of an access log').fill('chats');
    await page.getByRole('button', { name: 'Simulate' }).click();
    expect(await page.getByRole('alert').textContent()).toMatch(/^routes\[0\]: /);
    await page
      .getByLabel('Lines of a log')
      .fill('{"time":"2026-11-21T10:00:00Z","account":"acc_1","route":"GET /chats"}\n'.repeat(5));
    await page.getByLabel('Routes of an access log').fill('');
    await page.getByLabel('Where a line has its account').fill('');
    await page.getByRole('button', { name: 'Simulate' }).click();
    await expect
      .poll(() => page.locator('.playground details [role=status] p').textContent())
      .toMatch(/Of 5 requests, these limits reject 2\./);
  });

  it('shows what the candidate answers beside the current answer', async () => {
    await page.getByRole('button', { name: 'A stricter candidate' }).click();
    await page.getByText('requests as a table').click();
    await page.locator('.playground').getByRole('button', { name: '3', exact: true }).click();
    expect(await heading()).toBe('Request 3, at 4 s');
    const texts = (selector: string): Promise<string[]> => page.locator(`.answers ${selector}`).allTextContents();
    expect(await texts('.answer h3:first-child')).toEqual(expect.arrayContaining(['Current', 'Candidate']));
    expect(await texts('.status')).toEqual(['200 OK', '429 Too Many Requests']);
    expect(await texts('.answer:nth-of-type(2) dd')).toEqual(['2', '0', '3', '3']);
    await page.getByRole('slider', { name: 'Time' }).press('ArrowRight');
    expect(await heading()).toBe('A request at 4.2 s would get');
    expect(await texts('.status')).toEqual(['200 OK', '429 Too Many Requests']);
  });

  it('adjusts the limits while requests go on, and keeps what is used', async () => {
    await page.getByRole('button', { name: 'Clear' }).click();
    const timeline = page.getByRole('slider', { name: 'Time' });
    await page.getByLabel('All methods').fill('2/1m');
    for (const press of ['Enter', 'Enter', 'Enter', 'PageUp']) await timeline.press(press);
    expect(await page.textContent('.answers .status')).toBe('429 Too Many Requests');
    await page.getByLabel('Adjust the limits at 2 s').check();
    await page.getByRole('group', { name: 'Adjusted at 2 s' }).getByLabel('All methods').fill('5/1m');
    expect(await page.textContent('.answers .status')).toBe('200 OK');
    expect(await page.locator('.answers li').allTextContents()).toEqual([
      'All methods 5/1m: 2 of 5 used, ends in 58 s',
    ]);
    await page.getByRole('button', { name: 'Copy a link' }).click();
    const copy = await site.openPage();
    await copy.open(new URL(page.url()).pathname + new URL(page.url()).hash);
    await copy.page.getByRole('group', { name: 'Adjusted at 2 s' }).waitFor();
    expect(await copy.page.locator('.timeline .adjustment').count()).toBe(1);
  });

  it('says what is typed in words, at its field', async () => {
    const field = page.getByLabel('All methods');
    await field.fill('3/10s');
    const described = (): Promise<string> =>
      field.evaluate((input) =>
        (input.getAttribute('aria-describedby') ?? '')
          .split(' ')
          .map((id) => document.getElementById(id)?.textContent)
          .join(' '),
      );
    expect(await described()).toBe(
      'Applies to every route alike. Each route has a count of its own. 3 requests in 10 s. The window opens with an ' +
        'accepted request, ends exactly 10 s later, and opens again with the next one.',
    );
    await field.fill('3/');
    expect(await described()).toMatch(/count of its own\. limits\.allMethods\[0\]: /);
  });

  it('works by touch: a tap sends, a drag moves time, and no key is named', async () => {
    const touch = await site.openPage({ viewport: { width: 375, height: 800 }, hasTouch: true, isMobile: true });
    await touch.open('/playground');
    const timeline = touch.page.locator('.timeline svg');
    await timeline.waitFor();
    expect(await touch.page.getByText('Keys: arrows move').isVisible()).toBe(false);
    expect(await touch.page.getByText('Tap the timeline').isVisible()).toBe(true);
    await touch.page.getByRole('button', { name: 'Clear' }).tap();
    await timeline.scrollIntoViewIfNeeded();
    const box = await timeline.boundingBox();
    if (box === null) throw new Error('a timeline');
    const at = (part: number) => ({ x: box.x + 14 + (box.width - 28) * part, y: box.y + 60 });
    await touch.page.touchscreen.tap(at(0.5).x, at(0.5).y);
    expect(await touch.page.textContent('.answers h2')).toBe('Request 1, at 30 s');
    const cdp = await touch.page.context().newCDPSession(touch.page);
    const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', part?: number) =>
      cdp.send('Input.dispatchTouchEvent', { type, touchPoints: part === undefined ? [] : [at(part)] });
    await send('touchStart', 0.5);
    for (const part of [0.55, 0.6, 0.7, 0.75]) await send('touchMove', part);
    await send('touchEnd');
    expect(await touch.page.textContent('.answers h2')).toBe('A request at 45 s would get');
    expect(await touch.page.locator('.timeline .request').count()).toBe(1);
    expect(await touch.faults()).toEqual([]);
  });

  it('shows the whole report of a log on a phone, without scrolling in a box', async () => {
    await page.setViewportSize({ width: 375, height: 800 });
    await page.getByText('Try these limits on a log').click();
    await page.getByRole('button', { name: 'Use a sample' }).click();
    const report = page.getByLabel('The whole report');
    await report.waitFor();
    expect(await report.textContent()).toContain('Clients would have acted differently');
    expect(
      await report.evaluate((box) => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]),
    ).toEqual([0, 0]);
  });

  it('refuses a hostile link, and says why', async () => {
    const hostile = [
      'a=%3Cimg%20src=x%20onerror=alert(1)%3E&s=1o',
      'a=3/10s%3Cscript%3Ealert(1)%3C/script%3E&s=1o',
      '%',
      `a=3/10s&s=1o&t=${'0.'.repeat(5_000)}`,
      `a=3/10s&s=1o&t=${'0.'.repeat(1_000)}`,
      '9'.repeat(1_000_000),
      'a=3/10s&s=1o&t=NaN',
      'a=1/1y&s=1o',
    ];
    for (const link of hostile) {
      await rowsOf(page, link);
      const note = await page.textContent('.link-fault');
      expect(note).toMatch(/^The link cannot be shown: /);
      expect(note?.length).toBeLessThan(200);
      expect(await page.locator('.timeline .bar').count()).toBe(5);
    }
    expect(await page.locator('.playground img, .playground script').count()).toBe(0);
  });

  it.each([
    { width: 1280, colorScheme: 'dark' },
    { width: 320, colorScheme: 'light' },
    { width: 320, colorScheme: 'dark' },
  ] as const)('has no accessibility finding, and fits: %o', async ({ width, colorScheme }) => {
    const { page, open, faults } = await site.openPage({ viewport: { width, height: 800 }, colorScheme });
    await open('/playground');
    await page.getByRole('button', { name: 'A stricter candidate' }).click();
    for (const summary of await page.locator('.playground summary').all()) await summary.click();
    await page.getByRole('button', { name: 'Use a sample' }).click();
    await page.getByText('the candidate newly rejects').nth(1).waitFor();
    expect(await axeFaults(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    expect(await faults()).toEqual([]);
  });
});
