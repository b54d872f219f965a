/** CPU time of this process so far, in microseconds. */
export function cpuMicros() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
