/** Lua files are bundled as their text. */
declare module '*.lua' {
  const source: string;
  // biome-ignore lint/style/noDefaultExport: bundlers give a text file as the default export
  export default source;
}
