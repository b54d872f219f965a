import { checkPage } from 'headgate-testbed/page-checks';
import { expect, test } from 'vitest';
import { startConsole, VIEWS } from './support/console-gateway.ts';

const gateway = await startConsole();

test.each(VIEWS)(
  'in %s colours, %d pixels wide, it shows who is rejected, by which window, and how the store does',
  async (colorScheme, width) => {
    const page = await gateway.open('#/', 'viewer', { colorScheme, viewport: { width, height: 800 } });
    expect(await gateway.send('acc_1', 7)).toContain(429);
    await page.waitForSelector('.top >> text=acc_1');
    const meter = page.locator('section:has(h2:text("Most rejected")) [role=meter]');
    expect(await meter.getAttribute('aria-valuetext')).toBe('5 of 5 used');
    const figures = await page.innerText('.figures');
    expect(figures).toMatch(
      /Decisions per second\s+[\d.]+\s+1 of 1 process\s+Accepted per second\s+[\d.]+\s+this gateway/,
    );
    expect(figures).toMatch(/Store\s+ok\s+memory, breaker closed; this gateway/);
    const rejected = page.locator('section:has(h2:text("Most rejected"))');
    expect(await rejected.innerText()).toMatch(
      /In the last minute, 1 of 1 process\s+acc_1\s+\d+ times\s+POST \/api\/v1\/emails\s+\d+ since [\d:]+/,
    );
    await page.waitForSelector('canvas');
    await expect
      .poll(() => page.getAttribute('[role=img]', 'aria-label'), { timeout: 15_000 })
      .toMatch(/ and [1-9]\d* rejected\.$/);
    await checkPage(page, 'en');
    // On a small screen, who is rejected comes before the figures and the charts.
    const topOf = async (place: string) => (await page.locator(place).first().boundingBox())?.y ?? 0;
    const list = await topOf('.first');
    expect([list < (await topOf('.figures')), list < (await topOf('.chart'))]).toEqual([width < 768, true]);
    // The table of the processes is wider than that.
    expect(await page.getByText('Scroll sideways').count()).toBe(width < 768 ? 1 : 0);
    // Nobody needs a look any more who is not rejected now.
    await page.route('**/v1/top?by=rejected*', async (route) => {
      const response = await route.fetch();
      const top = await response.json();
      const accounts = top.accounts.map((each: object) => ({ ...each, lastMinute: 0 }));
      await route.fulfill({ response, json: { ...top, accounts } });
    });
    await rejected.getByText('Nobody was rejected in the last minute.').waitFor();
    expect(await rejected.innerText()).toMatch(/Before, since [\d:]+\s+acc_1\s+\d+ times$/);
    expect(await rejected.getByRole('meter').count()).toBe(0);
  },
);
