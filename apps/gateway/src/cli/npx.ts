/** How often the parent process is looked at, in milliseconds. */
const CHECK_MS = 250;

/**
 * Calls `onEnd` when the shell ends in which npx runs this process. npx passes SIGTERM to that shell only, and a shell
 * such as dash ends without passing it on. Without this, the process would run on unnoticed and occupy its port.
 */
export function whenNpxEnds(onEnd: () => void): void {
  if (process.env.npm_lifecycle_event !== 'npx') return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onEnd();
  }, CHECK_MS).unref();
}
