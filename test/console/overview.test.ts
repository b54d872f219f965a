import { expect, test } from 'vitest';
import { startConsole, VIEWS } from './support/console-gateway.ts';
import { checkPage } from './support/page-checks.ts';

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
      /Decisions per second\s+[\d.]+\s+1 of 1 process\s+Accepted per second\s+[\d.]+\s+this process/,
    );
    expect(figures).toMatch(/Store\s+ok\s+memory, breaker closed; this process/);
    expect(await page.innerText('section:has(h2:text("Most rejected"))')).toMatch(/Since [\d:]+, 1 of 1 process/);
    await page.waitForSelector('canvas');
    await expect
      .poll(() => page.getAttribute('[role=img]', 'aria-label'), { timeout: 15_000 })
      .toMatch(/ and [1-9]\d* rejected\.$/);
    await checkPage(page, 'en');
  },
);
