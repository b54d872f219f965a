export { createFakeClock, type FakeClock } from './fake-clock.ts';
export { createModel } from './model.ts';
