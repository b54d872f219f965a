/** A lane of an application. */
export interface ApplicationLane {
  readonly applicationId: string;
  readonly lane: string;
}

/** How many jobs a process does at once. */
export interface Bounds {
  /** Of one lane, at most. */
  readonly perLane: number;
  /** Of one kind. One application does at most half of them, and less if other applications are busy, too. */
  readonly atOnce: number;
}

interface ApplicationTurns {
  running: number;
  readonly runningPerLane: Map<string, number>;
  /** Lanes that may contain due jobs. */
  readonly waiting: Set<string>;
}

/**
 * Decides which lane begins its next job: the applications in turn, and the lanes of an application in turn.
 *
 * An application begins a job only if more places are free than it uses: one busy application leaves half of the places
 * free, two leave a third. A lane begins a job only if this difference is larger than the number of its own running
 * jobs, so an application leaves places for its other lanes. Jobs that hang therefore never take the last place.
 */
export class Turns {
  #running = 0;
  readonly #applications = new Map<string, ApplicationTurns>();

  constructor(private readonly bounds: Bounds) {}

  /** The lanes that wait for their turn. */
  waiting(): string[] {
    return [...this.#applications.values()].flatMap(({ waiting }) => [...waiting]);
  }

  /** Lets a lane wait for its turn, because it may contain a due job. */
  wait({ applicationId, lane }: ApplicationLane): void {
    let application = this.#applications.get(applicationId);
    if (application === undefined) {
      application = { running: 0, runningPerLane: new Map(), waiting: new Set() };
      this.#applications.set(applicationId, application);
    }
    application.waiting.add(lane);
  }

  /** Takes a place for the next lane. Undefined if no waiting lane may begin a job now. */
  next(): ApplicationLane | undefined {
    const { atOnce, perLane } = this.bounds;
    for (const [applicationId, application] of this.#applications) {
      const { running, runningPerLane, waiting } = application;
      const room = atOnce - this.#running - running;
      const most = Math.min(perLane, room);
      if (most <= 0) continue;
      for (const lane of waiting) {
        const count = runningPerLane.get(lane) ?? 0;
        if (count >= most) continue;
        waiting.delete(lane);
        runningPerLane.set(lane, count + 1);
        application.running++;
        this.#running++;
        // The other applications come before its next turn.
        this.#applications.delete(applicationId);
        this.#applications.set(applicationId, application);
        return { applicationId, lane };
      }
    }
    return undefined;
  }

  /** Frees the place that `next` took. */
  end({ applicationId, lane }: ApplicationLane): void {
    const application = this.#applications.get(applicationId);
    if (application === undefined) return;
    const { runningPerLane, waiting } = application;
    const left = (runningPerLane.get(lane) ?? 1) - 1;
    if (left > 0) runningPerLane.set(lane, left);
    else runningPerLane.delete(lane);
    application.running--;
    this.#running--;
    if (application.running === 0 && waiting.size === 0) this.#applications.delete(applicationId);
  }
}
