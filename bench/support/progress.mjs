/** One line that is written anew, on stderr, so that stdout is only the report; where nobody watches, a line for each. */
export function progress(text) {
  process.stderr.write(
    process.stderr.isTTY ? `\r\x1b[2K… ${text.slice(0, process.stderr.columns - 3)}` : `… ${text}\n`,
  );
}

/** Leaves nothing of it on the screen. */
export function endProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
}
