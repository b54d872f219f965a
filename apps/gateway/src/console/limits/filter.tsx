import { useEffect, useState } from 'preact/hooks';
import { Choice, Field } from '../parts/field.tsx';
import { LAYERS, type Layer, layerOf, targetOf } from '../parts/target.ts';
import { Tick } from '../parts/tick.tsx';
import { href, replaceWith } from '../route.ts';

/** Selects the limits of the list. */
export interface LimitFilter {
  /** Empty: of every layer. */
  readonly layer: Layer | '';
  /** Empty: of every name. */
  readonly name: string;
  readonly isAdjusted: boolean;
}

const ANY = [['', 'Every layer'], ...LAYERS] as const;

/** Reads the filter from an address. The address of one limit selects the limits of its layer. */
export function filterOf(query: URLSearchParams): LimitFilter {
  const { layer, name } = layerOf(targetOf(query));
  const given = ANY.find(([each]) => each === query.get('layer'))?.[0];
  return {
    layer: given ?? (layer === 'default' ? '' : layer),
    name: query.get('name') ?? name,
    isAdjusted: query.has('adjusted'),
  };
}

/** Asks which limits to show. The address contains the answer, so that it can be sent to others. */
export function FilterForm({ filter }: { filter: LimitFilter }) {
  const [name, setName] = useState(filter.name);
  useEffect(() => setName(filter.name), [filter.name]);
  const show = (changed: Partial<LimitFilter>): void => {
    const { isAdjusted, ...wanted } = { ...filter, name: name.trim(), ...changed };
    const { layer } = wanted;
    replaceWith(
      href('limits', undefined, {
        layer: layer || undefined,
        name: (layer !== 'default' && wanted.name) || undefined,
        adjusted: isAdjusted ? '1' : undefined,
      }),
    );
  };
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        show({});
      }}
    >
      <Choice label="Layer" value={filter.layer} options={ANY} onValue={(layer) => show({ layer })} />
      <Field label="Name" autocomplete="off" placeholder="linkedin" value={name} onValue={setName} />
      <button type="submit" class="quiet">
        Show
      </button>
      <Tick value={filter.isAdjusted} onValue={(isAdjusted) => show({ isAdjusted })}>
        Adjusted only
      </Tick>
    </form>
  );
}
