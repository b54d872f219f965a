import { describe, expect, test } from 'vitest';
import { type ApplicationLane, Turns } from '../../src/jobs/turns.ts';

/** Takes all places that waiting lanes may take. Each lane contains more jobs than it may do at once. */
function fill(turns: Turns): ApplicationLane[] {
  const taken: ApplicationLane[] = [];
  for (let next = turns.next(); next !== undefined; next = turns.next()) {
    taken.push(next);
    turns.wait(next);
  }
  return taken;
}

function wait(turns: Turns, applicationId: string, lanes: number): void {
  for (let lane = 0; lane < lanes; lane++) turns.wait({ applicationId, lane: `${applicationId} ${lane}` });
}

const countOf = (taken: readonly ApplicationLane[], applicationId: string): number =>
  taken.filter((each) => each.applicationId === applicationId).length;

describe('turns of lanes', () => {
  test('an application takes half of the places, two take a third each, and so on', () => {
    for (const [applications, share] of [
      [1, 200],
      [2, 133],
      [3, 100],
      [7, 50],
      [39, 10],
    ] as const) {
      const turns = new Turns({ perLane: 5, atOnce: 400 });
      for (let i = 0; i < applications; i++) wait(turns, `app ${i}`, 50);
      const taken = fill(turns);
      for (let i = 0; i < applications; i++)
        expect(Math.abs(countOf(taken, `app ${i}`) - share)).toBeLessThanOrEqual(1);
      // The next application may begin at once.
      turns.wait({ applicationId: 'late', lane: 'late' });
      expect(turns.next()).toEqual({ applicationId: 'late', lane: 'late' });
    }
  });

  test('an application that takes its places first leaves the same to the others', () => {
    const turns = new Turns({ perLane: 5, atOnce: 400 });
    wait(turns, 'first', 50);
    expect(fill(turns)).toHaveLength(199);
    wait(turns, 'second', 50);
    expect(fill(turns)).toHaveLength(100);
    // A place that becomes free goes to the application with fewer of them.
    for (let i = 0; i < 60; i++) {
      turns.end({ applicationId: 'first', lane: `first ${i % 49}` });
      expect(countOf(fill(turns), 'first')).toBe(0);
    }
  });

  test('lanes that hang leave a place for each other lane of their application', () => {
    for (const others of [0, 1, 5]) {
      const turns = new Turns({ perLane: 5, atOnce: 400 });
      for (let i = 0; i <= others; i++) wait(turns, `app ${i}`, 49);
      fill(turns);
      turns.wait({ applicationId: 'app 0', lane: 'works' });
      expect(turns.next()).toEqual({ applicationId: 'app 0', lane: 'works' });
    }
  });

  test('applications and lanes begin in turn, and a lane has a bound', () => {
    const turns = new Turns({ perLane: 2, atOnce: 100 });
    wait(turns, 'a', 2);
    wait(turns, 'b', 1);
    expect(fill(turns).map(({ lane }) => lane)).toEqual(['a 0', 'b 0', 'a 1', 'b 0', 'a 0', 'a 1']);
    expect(turns.waiting().sort()).toEqual(['a 0', 'a 1', 'b 0']);
    turns.end({ applicationId: 'a', lane: 'a 1' });
    expect(fill(turns)).toEqual([{ applicationId: 'a', lane: 'a 1' }]);
  });

  test('an application without jobs is forgotten', () => {
    const turns = new Turns({ perLane: 2, atOnce: 4 });
    wait(turns, 'a', 1);
    const lane = turns.next();
    if (lane !== undefined) turns.end(lane);
    expect([turns.waiting(), turns.next()]).toEqual([[], undefined]);
    wait(turns, 'b', 4);
    expect(fill(turns)).toHaveLength(2);
  });
});
