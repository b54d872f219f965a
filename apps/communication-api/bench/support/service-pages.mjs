/** What a page loads by itself: stylesheets, scripts and images. Its links are not followed. */
const LOADED = /<(?:link|script|img|iframe|source)\b[^>]*?\b(?:href|src)="([^"]*)"/g;
const LOADED_BY_STYLE = /(?:url\(\s*|@import\s+)["']?([^"')\s;]+)/g;

/**
 * What a browser loads for a page.
 * @returns `own`: paths of the same origin; `elsewhere`: addresses of other origins
 */
export function loadedBy(text, origin) {
  const addresses = [LOADED, LOADED_BY_STYLE].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, found]) => found),
  );
  const urls = addresses.filter((one) => !one.startsWith('data:')).map((one) => new URL(one, origin));
  return {
    own: [...new Set(urls.filter((url) => url.origin === origin).map((url) => url.pathname))],
    elsewhere: urls.filter((url) => url.origin !== origin).map(String),
  };
}

/**
 * Loads a page with all that it needs, as a browser with an empty cache does.
 * @returns the page, the bytes of everything, not compressed, and the number of requests to other origins
 */
export async function loadPage(origin, path, headers = {}) {
  const answer = await fetch(origin + path, { headers, redirect: 'manual' });
  if (answer.status !== 200) throw new Error(`${path}: unexpected status ${answer.status}`);
  const html = await answer.text();
  const loaded = loadedBy(html, origin);
  const files = await Promise.all(loaded.own.map(async (file) => (await fetch(origin + file)).text()));
  const texts = [html, ...files];
  return {
    html,
    bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
    elsewhere: texts.flatMap((text) => loadedBy(text, origin).elsewhere).length,
  };
}
