/**
 * A module of Node, without an import, so that the caller also runs on other platforms.
 * @returns undefined if the module is missing on the platform
 */
export function builtinModule<Module>(name: string): Module | undefined {
  try {
    return globalThis.process?.getBuiltinModule?.(name) as Module | undefined;
  } catch {
    // In the Edge runtime of Next.js the function exists, but every call throws.
    return undefined;
  }
}
