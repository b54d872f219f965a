// Packages are found in the folders further up, to the root of this repository.
const root = process.env.HEADGATE_ROOT;

export default { outputFileTracingRoot: root, turbopack: { root } };
