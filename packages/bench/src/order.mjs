/** A fixed random order, the same for all candidates. Sequential keys would favour a store that keeps them in a row. */
export function pseudoRandomOrder(keyCount, length = 1 << 20) {
  const order = new Uint32Array(length);
  let seed = 42;
  for (let i = 0; i < order.length; i++) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    order[i] = Math.floor((seed / 2 ** 32) * keyCount);
  }
  return order;
}
