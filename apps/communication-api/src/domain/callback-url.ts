/** The result of a link, as query parameters for the client application. */
export type CallbackResult =
  | { readonly account_id: string; readonly provider: string }
  | { readonly error_type: string; readonly error_title: string; readonly error_detail: string };

/**
 * The address to which the user returns. Query parameters of the redirect address stay as they are written, except
 * those with the name of one of ours.
 */
export function callbackUrl(redirectUri: string, result: CallbackResult, state: string | null): string {
  const url = new URL(redirectUri);
  const ours = new URLSearchParams({ ...result, ...(state === null ? {} : { state }) });
  const kept = url.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && ![...new URLSearchParams(pair).keys()].some((name) => ours.has(name)));
  url.search = [...kept, ours.toString()].join('&');
  return url.href;
}
