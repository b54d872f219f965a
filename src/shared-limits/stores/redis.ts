import type { Logger } from '../../base/logger.ts';
import { checkOptions } from '../../base/options.ts';
import { inSlices } from '../../base/slices.ts';
import { type AdjustmentEntry, type AdjustmentState, type Head, MAX_RECENT, targetKey } from '../../core/adjustment.ts';
import type { Clock } from '../../core/clock.ts';
import { type Commands, commandsOf, type RedisClient } from '../../stores/redis/client.ts';
import { isHarmless } from '../../stores/redis/errors.ts';
import { type AdjustmentKeys, adjustmentKeys } from '../../stores/redis/keys.ts';
import { fillCommonOptions } from '../../stores/redis/options.ts';
import { readIntegerReply } from '../../stores/redis/reply.ts';
import { createScript, type Script, scriptTime } from '../../stores/redis/script.ts';
import { CircuitBreaker } from '../../stores/shared/circuit-breaker.ts';
import { OutageLog } from '../../stores/shared/outage-log.ts';
import { traceCall } from '../../stores/shared/store-tracer.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance, AdjustmentStore } from '../ports.ts';
import listSource from './lua/instances.lua';
import readSource from './lua/read.lua';
import writeSource from './lua/write.lua';
import {
  type AdjustmentPart,
  headText,
  type ReadReply,
  readHistory,
  readInstances,
  readPartReply,
  readReadReply,
} from './redis-reply.ts';
import { readWhole } from './redis-whole.ts';

/** Options of {@link createRedisAdjustments}. */
export interface RedisAdjustmentsOptions {
  /**
   * Start of every key. It may equal the prefix of the other stores.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for an answer, in milliseconds. For a change of many limits it is longer.
   * @default 250
   */
  readonly deadlineMs?: number;
  /** Called with the error of every call that failed, for metrics. Its errors are logged. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * Is called when calls begin to fail, and when Redis answers again. False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
  /** For tests: a clock that returns integer milliseconds, instead of the server's clock. */
  readonly clock?: Clock | undefined;
}

const OPTIONS = ['prefix', 'deadlineMs', 'onError', 'logger', 'clock'];
/** Entries of the history that are stored, about. */
const MAX_HISTORY = 10_000;
/** Limits that are written within the deadline. Twice as many get twice the time. */
const LIMITS_PER_DEADLINE = 1_000;
/** How much longer than other calls one may take that returns everything. */
const WHOLE = 4;

const readScript = /* @__PURE__ */ createScript(readSource);
const writeScript = /* @__PURE__ */ createScript(writeSource);
const listScript = /* @__PURE__ */ createScript(listSource);

/**
 * Creates a store of adjustments in Redis, which any number of processes can share. Its calls have a circuit breaker of
 * their own, so they never open the breaker of decisions. The store never connects, configures or closes the client.
 * @throws OptionError
 */
export function createRedisAdjustments(client: RedisClient, options: RedisAdjustmentsOptions = {}): AdjustmentStore {
  checkOptions(options, OPTIONS, 'options');
  const { prefix, deadlineMs, onError, clock, log } = fillCommonOptions(options);
  const commands = commandsOf('client', client);
  const { isReady } = commands;
  const effect = 'the last known adjustments apply';
  const outages = new OutageLog({ what: 'adjustments', effect, isReady, log, onError, isHarmless });
  const breaker = new CircuitBreaker({
    deadlineMs,
    isReady,
    isHarmless,
    onError: outages.failed,
    onAnswer: outages.answered,
  });
  return new RedisAdjustments({ commands, breaker, keys: adjustmentKeys(prefix), deadlineMs, clock });
}

interface Parts {
  readonly commands: Commands;
  readonly breaker: CircuitBreaker;
  readonly keys: AdjustmentKeys;
  readonly deadlineMs: number;
  readonly clock: Clock | undefined;
}

class RedisAdjustments implements AdjustmentStore {
  readonly durable = true;
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  read(known: Head | undefined, instance?: string): Promise<AdjustmentReply> {
    return this.#traced('read', () => this.#readNew(known, instance));
  }

  append(seen: Head | undefined, entry: AdjustmentEntry): Promise<boolean> {
    const { version, by, reason, at } = entry;
    const fields = entry.limits.flatMap(({ target, to: windows, until }) => {
      const adjustment = { target, windows, version, by, reason, at, until };
      return [targetKey(target), windows === undefined ? '' : JSON.stringify(adjustment)];
    });
    return this.#traced('append', () => this.#write(seen, entry, [entry], fields, false));
  }

  restore(seen: Head | undefined, { head, adjustments, recent }: AdjustmentState): Promise<boolean> {
    return this.#traced('restore', async () => {
      const fields: string[] = [];
      await inSlices(adjustments, (each) => fields.push(targetKey(each.target), JSON.stringify(each)));
      return this.#write(seen, head, recent, fields, true);
    });
  }

  async history(before: number | undefined, limit: number): Promise<readonly AdjustmentEntry[]> {
    if (before !== undefined && before <= 1) return [];
    const args = [before === undefined ? '+' : String(before - 1), String(limit)];
    return this.#traced('history', () => this.#run(listScript, [this.#parts.keys.history], args, readHistory));
  }

  instances(): Promise<readonly AdjustmentInstance[]> {
    const keys = [this.#parts.keys.processes];
    return this.#traced('instances', () => this.#run(listScript, keys, [''], readInstances));
  }

  /** A call of the store is published once, however many scripts it takes. */
  #traced<T>(operation: string, call: () => Promise<T>): Promise<T> {
    return traceCall('adjustments', operation, this.#parts.breaker, call);
  }

  async #readNew(known: Head | undefined, instance?: string): Promise<AdjustmentReply> {
    const reply = await this.#read(known, instance);
    if (reply.kind === 'none') return reply;
    if (reply.kind !== 'all') {
      const { size: _, ...rest } = reply;
      return rest;
    }
    return readWhole(reply, { read: (head) => this.#read(head), readPart: (from) => this.#readPart(from) });
  }

  #read(known: Head | undefined, instance?: string): Promise<ReadReply> {
    const head = known === undefined ? ['', ''] : [String(known.version), known.nonce];
    const noted = instance === undefined ? ['', ''] : ['1', instance];
    const deadlineMs = this.#parts.deadlineMs * (known === undefined ? WHOLE : 1);
    return this.#run(readScript, this.#all, [...head, String(MAX_RECENT), ...noted, ''], readReadReply, deadlineMs);
  }

  #readPart(from: string): Promise<AdjustmentPart> {
    return this.#run(readScript, this.#all, ['', '', '', '', '', from], readPartReply);
  }

  get #all(): readonly string[] {
    const { adjustments, history, processes } = this.#parts.keys;
    return [adjustments, history, processes];
  }

  #write(
    seen: Head | undefined,
    head: Head,
    entries: readonly AdjustmentEntry[],
    fields: readonly string[],
    isWhole: boolean,
  ): Promise<boolean> {
    const { keys, breaker, commands, deadlineMs } = this.#parts;
    const args = [
      ...[headText(seen), headText(head), isWhole ? '1' : '', String(MAX_HISTORY), String(entries.length)],
      ...entries.flatMap((entry) => [String(entry.version), entry.nonce, JSON.stringify(entry)]),
      ...fields,
    ];
    const send = async (): Promise<boolean> =>
      readIntegerReply(await writeScript.run(commands, [keys.adjustments, keys.history], args)) === 1;
    return breaker.run(send, deadlineMs * (1 + Math.floor(args.length / LIMITS_PER_DEADLINE)));
  }

  #run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    read: (reply: unknown) => T | Promise<T>,
    deadlineMs = this.#parts.deadlineMs,
  ): Promise<T> {
    const { commands, breaker, clock } = this.#parts;
    const send = (): Promise<unknown> => script.run(commands, keys, [scriptTime(clock), ...args]);
    return breaker.run(send, deadlineMs, read);
  }
}
