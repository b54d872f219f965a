import type { Claim } from '../api/answers.ts';

type State = Claim['state'];

const BADGES: Readonly<Record<State, string>> = { free: '', in_progress: 'care', completed: 'good', orphan: 'bad' };

/** Explanations of the states. */
export const MEANINGS: Readonly<Record<State, string>> = {
  free: 'The key is free: the next request with it is executed.',
  in_progress: 'A process executes the request now, or has not said yet how it ended.',
  completed: 'The answer is stored. Every retry gets it.',
  orphan:
    'Its process has ended, and the request may have been sent. Every retry gets 409 until an operator says what became of it.',
};

/** The state of a claim in a word. */
export function ClaimState({ state }: { state: State }) {
  return <span class={`badge ${BADGES[state]}`}>{state.replace('_', ' ')}</span>;
}
