import type { SuiteAnswer, SuiteHandler } from './adapter-suite/subject.ts';

/** Makes a web response of a response of the suite. */
export function webResponse({ status, headers, body }: SuiteAnswer): Response {
  return new Response(webBody(body) as never, { status, headers });
}

/** Runs a handler of the suite, and returns its last response. */
export async function answerOf(handle: SuiteHandler, request: Request): Promise<SuiteAnswer> {
  let answer: SuiteAnswer | undefined;
  await handle({ body: async () => new Uint8Array(await request.arrayBuffer()) }, (given) => {
    answer = given;
  });
  return answer as SuiteAnswer;
}

/** Cases about a framework's response to an error. Without a framework, the runtime responds after the gate. */
export const THROWN_GAPS = {
  "a handler fails before it writes: the framework's response shows the limits": 'the runtime responds',
  'I6: a handler fails before it writes: with a key, this is the outcome, and it is not executed again':
    'the runtime responds; a retry gets 409',
  'a handler fails after it wrote: the response that the client got is the outcome':
    'the runtime responds; a retry gets 409',
} as const;

function webBody(body: SuiteAnswer['body']): string | Uint8Array | ReadableStream | null {
  if (typeof body !== 'object' || body instanceof Uint8Array) return body ?? null;
  const chunks = body[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}
