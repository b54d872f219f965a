import type { Page } from 'playwright-core';

const MOST = 100;

/** Presses Tab until the focus is on what has a label or text, and says so if it never is. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let i = 0; i < MOST; i++) {
    await page.keyboard.press('Tab');
    const isThere = await page.evaluate((wanted) => {
      const focused = document.activeElement;
      if (!(focused instanceof HTMLElement)) return false;
      const labels = 'labels' in focused ? [...((focused as HTMLInputElement).labels ?? [])] : [];
      const names = [
        focused.getAttribute('aria-label') ?? focused.textContent,
        ...labels.map((each) => each.textContent),
      ];
      return names.some((each) => each?.trim() === wanted);
    }, name);
    if (isThere) return;
  }
  throw new Error(`Tab never reached ${JSON.stringify(name)}`);
}
