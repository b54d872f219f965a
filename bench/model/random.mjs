const TWO_32 = 2 ** 32;
const GOLDEN = 0x9e3779b9;

/**
 * A seeded source of random numbers: the same seed gives the same numbers on every machine. It is xoshiro128** by
 * Blackman and Vigna ("Scrambled linear pseudorandom number generators", 2018); murmur3's finalizer fills its state
 * from the seed.
 */
export function createRandom(seed) {
  const state = Uint32Array.from({ length: 4 }, (_, i) => mix(seed + (i + 1) * GOLDEN));

  function bits() {
    const scrambled = Math.imul(rotate(Math.imul(state[1], 5), 7), 9);
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 11);
    return scrambled >>> 0;
  }

  /** In (0, 1), with 53 bits: with 32 bits the 10^9 ranks would not be equally likely. */
  const uniform = () => ((bits() >>> 6) * 2 ** 27 + (bits() >>> 5) + 0.5) / 2 ** 53;

  return {
    uniform,
    /** From 0 to `count` - 1. */
    below: (count) => Math.floor((bits() / TWO_32) * count),
    exponential: (mean) => -mean * Math.log(uniform()),
    /** `median * exp(sigma * normal)`, by Box and Muller. */
    lognormal: (median, sigma) =>
      median * Math.exp(sigma * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())),
    /** From 1 on. */
    geometric: (mean) => (mean <= 1 ? 1 : 1 + Math.floor(Math.log(uniform()) / Math.log1p(-1 / mean))),
  };
}

/** Hashes a whole number of up to 53 bits to 32 well-mixed bits. */
export function mix(value) {
  let bits = ((value % TWO_32) ^ Math.imul(Math.floor(value / TWO_32), GOLDEN)) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

const rotate = (bits, by) => (bits << by) | (bits >>> (32 - by));
