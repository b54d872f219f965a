/** The bundler takes the style out of what imports it. */
declare module '*.css';
