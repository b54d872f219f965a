import type { Reporter, TestModule } from 'vitest/node';

/** With more second attempts than this, the run fails: they would hide more than the noise of a busy machine. */
const MOST = 5;

/**
 * A test of processes, browsers or servers may be late on a busy machine, so it gets a second attempt. Each one is
 * named here, with the error of the first attempt: it is a fault to mend, in the test or in the product.
 */
export default class SecondAttempts implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const tests = modules.flatMap((module) => [...module.children.allTests('passed')]);
    const late = tests.filter((test) => test.diagnostic()?.flaky);
    const print = (line: string) => process.stdout.write(`${line}\n`);
    for (const test of late) {
      print(`passed at the second attempt: ${test.project.name} ${test.module.relativeModuleId} > ${test.fullName}`);
      for (const { message, stacks } of test.result().errors ?? [])
        print(`  the first: ${message} (${stacks?.[0]?.file}:${stacks?.[0]?.line})`);
    }
    print(`Second attempts: ${late.length}.`);
    if (late.length <= MOST) return;
    print(`More than ${MOST} second attempts fail the run.`);
    process.exitCode = 1;
  }
}
