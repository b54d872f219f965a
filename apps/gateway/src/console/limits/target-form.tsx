import { useState } from 'preact/hooks';
import { Choice, Field } from '../parts/field.tsx';
import { LAYERS, type Layer, type Target, targetIn } from '../parts/target.ts';

/** Asks for a limit that may be missing in the list. */
export function TargetForm({ onTarget }: { onTarget: (target: Target) => void }) {
  const [layer, setLayer] = useState<Layer>('account');
  const [name, setName] = useState('');
  const [route, setRoute] = useState('');
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        onTarget(targetIn(layer, name.trim(), route.trim()));
      }}
    >
      <Choice label="Layer" value={layer} options={LAYERS} onValue={setLayer} />
      {layer !== 'default' && (
        <Field label="Name" autocomplete="off" placeholder="acc_1" required value={name} onValue={setName} />
      )}
      <Field
        label="Route (empty: all methods)"
        autocomplete="off"
        placeholder="POST /api/v1/emails"
        value={route}
        onValue={setRoute}
      />
      <button type="submit" class="quiet">
        Set a limit
      </button>
    </form>
  );
}
