/** @returns the processor time of this process from now on, in milliseconds. Other programs lengthen a time, but not this. */
export function startCpuTimer(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  };
}
