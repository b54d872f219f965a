/**
 * Whether the service knows a key: a request without a body is a 422 then, and else a 401.
 * @throws Error on another answer
 */
export async function isKnown(url: string, token: string): Promise<boolean> {
  const { status } = await fetch(`${url}/api/v1/emails`, { method: 'POST', headers: { 'x-api-key': token } });
  if (status !== 401 && status !== 422) throw new Error(`The service answers with ${status}.`);
  return status === 422;
}
