import adapter from '@sveltejs/adapter-node';

// The cases send forms without a browser's `Origin`.
export default { kit: { adapter: adapter(), csrf: { checkOrigin: false } } };
