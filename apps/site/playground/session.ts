import { computed, ref, type ShallowRef, shallowRef, watch } from 'vue';
import { MAX_REQUESTS } from './history.ts';
import { lanesOf } from './lanes.ts';
import { isFault, type LimitTexts, type PlaygroundLimits, readLimits } from './limits.ts';
import { FIRST, type State } from './presets.ts';

/** The last limits that were valid: while someone types, the timeline stays as it was. */
function lastValid(texts: () => LimitTexts | undefined): ShallowRef<PlaygroundLimits | undefined> {
  const limits = shallowRef<PlaygroundLimits>();
  const read = (typed: LimitTexts | undefined): void => {
    const result = typed === undefined ? undefined : readLimits(typed);
    if (result === undefined || !isFault(result)) limits.value = result;
  };
  // At once, so that no picture has the requests of one state and the limits of another.
  watch(texts, read, { immediate: true, flush: 'sync' });
  return limits;
}

/** What a reader has typed and sent, where in time they are, and what the limits answer. */
export function createSession() {
  const current = shallowRef<LimitTexts>(FIRST.current);
  const candidate = shallowRef<LimitTexts>();
  const adjustment = shallowRef<State['adjustment']>();
  const moments = shallowRef<readonly number[]>(FIRST.moments);
  const spanMs = ref(FIRST.spanMs);
  const nowMs = ref(0);
  /** The request that is shown. Without one, time is between requests. */
  const selected = ref<number>();
  /** What the reader should know about their last action. */
  const note = ref('');

  const currentLimits = lastValid(() => current.value);
  const candidateLimits = lastValid(() => candidate.value);
  const adjustedLimits = lastValid(() => adjustment.value?.limits);

  const lanes = computed(() => {
    if (currentLimits.value === undefined) return [];
    const [limits, adjusted, atMs] = [currentLimits.value, adjustedLimits.value, adjustment.value?.atMs];
    const policy = { limits, adjustment: adjusted && atMs !== undefined ? { atMs, limits: adjusted } : undefined };
    return lanesOf(policy, candidateLimits.value && { limits: candidateLimits.value }, moments.value);
  });

  function show(state: State): void {
    current.value = state.current;
    candidate.value = state.candidate;
    adjustment.value = state.adjustment;
    moments.value = state.moments;
    spanMs.value = state.spanMs;
    note.value = '';
    // The request that shows most: the first that is rejected.
    const first = lanes.value[0]?.history.findIndex(({ decision }) => !decision.accepted) ?? -1;
    select(first >= 0 ? first : moments.value.length - 1);
  }

  function select(index: number): void {
    const atMs = moments.value[index];
    selected.value = atMs === undefined ? undefined : index;
    nowMs.value = Math.min(spanMs.value, atMs ?? 0);
  }

  function moveTo(atMs: number): void {
    nowMs.value = atMs;
    const index = moments.value.lastIndexOf(atMs);
    selected.value = index < 0 ? undefined : index;
  }

  function send(atMs: number, count = 1): void {
    const room = Math.min(count, MAX_REQUESTS - moments.value.length);
    note.value = room < count ? `The playground has room for ${MAX_REQUESTS} requests.` : '';
    if (room <= 0) return;
    const before = moments.value.filter((moment) => moment <= atMs);
    const after = moments.value.slice(before.length);
    moments.value = [...before, ...Array<number>(room).fill(atMs), ...after];
    select(before.length + room - 1);
  }

  function remove(): void {
    const index = selected.value ?? moments.value.findLastIndex((atMs) => atMs <= nowMs.value);
    if (index < 0) return;
    moments.value = moments.value.filter((_, one) => one !== index);
    moveTo(nowMs.value);
  }

  function clear(): void {
    moments.value = [];
    moveTo(0);
  }

  const state = (): State => ({
    current: current.value,
    candidate: candidate.value,
    adjustment: adjustment.value,
    moments: moments.value,
    spanMs: spanMs.value,
  });

  const actions = { show, select, moveTo, send, remove, clear, state };
  return { current, candidate, adjustment, moments, spanMs, nowMs, selected, note, lanes, ...actions };
}

export type Session = ReturnType<typeof createSession>;
