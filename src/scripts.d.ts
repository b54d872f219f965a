/** Lua and SQL files are bundled as text. */
declare module '*.lua' {
  const source: string;
  // biome-ignore lint/style/noDefaultExport: bundlers export the text of a file as the default
  export default source;
}

declare module '*.sql' {
  const source: string;
  // biome-ignore lint/style/noDefaultExport: bundlers export the text of a file as the default
  export default source;
}
