import type { SuiteAnswer, SuiteHandler } from '../../src/testing/index.ts';

/** An answer as frameworks of the web take it. */
export function webResponse({ status, headers, body }: SuiteAnswer): Response {
  return new Response(webBody(body) as never, { status, headers });
}

/** Runs a handler of the suite, and gives what it answered last. */
export async function answerOf(handle: SuiteHandler, request: Request): Promise<SuiteAnswer> {
  let answer: SuiteAnswer | undefined;
  await handle({ body: async () => new Uint8Array(await request.arrayBuffer()) }, (given) => {
    answer = given;
  });
  return answer as SuiteAnswer;
}

/** Cases about the answer that a framework gives to an error: where there is none, the runtime gives it, behind our back. */
export const THROWN_GAPS = {
  "a handler that fails before it writes: the framework's answer shows the limits": 'the runtime answers',
  'I6: with a key, that failure is its outcome: it is not executed again': 'the runtime answers; a retry gets 409',
  'a handler that fails after it wrote: what its client got is the outcome': 'the runtime answers; a retry gets 409',
} as const;

function webBody(body: SuiteAnswer['body']): string | Uint8Array | ReadableStream | null {
  if (typeof body !== 'object' || body instanceof Uint8Array) return body ?? null;
  const pieces = body[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}
