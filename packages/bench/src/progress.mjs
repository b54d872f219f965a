/**
 * Shows progress on stderr, so that stdout shows only the report: one line that is overwritten on a terminal, a new
 * line each time if stderr is not a terminal.
 */
export function progress(text) {
  process.stderr.write(
    process.stderr.isTTY ? `\r\x1b[2K… ${text.slice(0, process.stderr.columns - 3)}` : `… ${text}\n`,
  );
}

/** Removes the progress line from the terminal. */
export function endProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
}
