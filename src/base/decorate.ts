/** The names of a port's methods, optional ones included. */
export type MethodName<Port> = {
  [Name in keyof Port]-?: NonNullable<Port[Name]> extends (...args: never[]) => unknown ? Name : never;
}[keyof Port];

/** Names every method of a port, so that a method that is missing here is a type error. */
export type MethodTable<Port> = Readonly<Record<MethodName<Port>, true>>;

/** The rest of a port, also as a table without gaps: fields that are optional in the port are not. */
export type Fields<Port> = Required<Omit<Port, MethodName<Port>>>;

/** The replacement of a method. `call` is the method, already bound to its object. */
export type Wrappers<Port> = {
  readonly [Name in MethodName<Port>]?: ((call: NonNullable<Port[Name]>) => NonNullable<Port[Name]>) | undefined;
};

/**
 * Decorates an object that implements a port. Each method comes from its wrapper, or else from the
 * object. The result implements an optional method if and only if the object does. No call costs a promise or a
 * look-up.
 */
export function decorate<Port extends object>(
  inner: Port,
  methods: MethodTable<Port>,
  fields: Fields<Port>,
  wrappers: Wrappers<Port>,
): Port {
  const decorated: Record<PropertyKey, unknown> = { ...fields };
  for (const name of Object.keys(methods) as (MethodName<Port> & string)[]) {
    const method = inner[name];
    if (typeof method !== 'function') continue;
    // A class needs its own `this`, for its private fields.
    const call = method.bind(inner) as NonNullable<Port[typeof name]>;
    decorated[name] = wrappers[name]?.(call) ?? call;
  }
  return decorated as Port;
}
