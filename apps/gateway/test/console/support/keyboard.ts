import type { Page } from 'playwright-core';

const MAX_STEPS = 150;

/**
 * Moves the focus with the Tab key, as somebody without a mouse does, until it is on an element with this name.
 * @throws Error if the keyboard does not reach it
 */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let step = 0; step < MAX_STEPS; step++) {
    await page.keyboard.press('Tab');
    if ((await nameOfFocus(page)) === name) return;
  }
  throw new Error(`the Tab key does not reach "${name}"`);
}

/** Moves the focus to an element with this name, and presses Enter there. */
export async function pressAt(page: Page, name: string): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press('Enter');
}

/** Replaces the text of the field with this name. */
export async function typeInto(page: Page, name: string, text: string): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

/** Chooses an entry of the list with this name by its first letters. */
export async function chooseIn(page: Page, name: string, letters: string): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.type(letters);
}

const nameOfFocus = (page: Page): Promise<string | undefined> =>
  page.evaluate(() => {
    const focused = document.activeElement as HTMLInputElement | null;
    const label = focused?.labels?.[0]?.textContent;
    return (focused?.getAttribute('aria-label') ?? label ?? focused?.textContent ?? undefined)?.trim();
  });
