/** Makes this process a member of a fleet: it replies to each request, one at a time, and ends when the fleet ends. */
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
