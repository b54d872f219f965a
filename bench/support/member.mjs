/** The other end of a fleet: answers each of its requests, one at a time, and ends with it. */
export function answerWith(answer) {
  process.on('message', async (request) => {
    try {
      process.send(await answer(request));
    } catch (error) {
      process.send({ error: error instanceof Error ? error.stack : JSON.stringify(error) });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send({ ready: true });
}
