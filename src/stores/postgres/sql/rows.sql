-- Claims whose steps write rows of the user. `headgate.` stands for the schema's name.

-- Executes one command of the table in docs/claims.md.
--   p: command, id (hex), scope, key, token, fingerprint, retention, and the fields of the command: lease, generation,
--     onOrphan, dispatch, deadline, full (a new key is refused: its scope reached its share), released (how long the
--     record of a released claim lasts), status, bytes
--   p_value: the value of complete
-- `made` of the reply: whether this command dispatched, completed or freed the claim. A repeated command did not.
create or replace function headgate.claim_1(p jsonb, p_value text, p_max_bytes bigint, p_patience_ms bigint, p_now bigint)
  returns jsonb language plpgsql
  -- The table can be small when a session plans these statements, and large when it runs them. A session may be told to
  -- plan each statement anew: in PGlite, that takes longer than the statements.
  set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_id constant bytea := decode(p ->> 'id', 'hex');
  v_command constant text := p ->> 'command';
  v_fingerprint constant text := p ->> 'fingerprint';
  v_token constant text := p ->> 'token';
  v_retention constant bigint := (p ->> 'retention')::bigint;
  v_now bigint;
  v_row headgate.claims;
  v_is_new boolean;
  v_is_own boolean;
  v_is_alone boolean := true;
  v_forgotten text;
  v_made boolean := true;
begin
  -- A command that may insert the key does not do so while a transaction has claimed it.
  if v_command = 'begin' then
    v_is_alone := pg_try_advisory_xact_lock_shared(headgate.claim_lock_1(v_id));
  elsif v_command = 'complete' then
    perform pg_advisory_xact_lock_shared(headgate.claim_lock_1(v_id));
  end if;
  loop
    if v_is_alone then
      select * into v_row from headgate.claims as c where c.id = v_id for update;
      perform headgate.in_time_1(p_patience_ms);
    else
      select * into v_row from headgate.claims as c where c.id = v_id;
    end if;
    -- After the wait for the lock.
    v_now := coalesce(p_now, headgate.clock_1());
    if v_command = 'begin' and v_now > (p ->> 'deadline')::bigint then
      return jsonb_build_object('kind', 'late', 'now', v_now);
    end if;
    v_is_new := v_row.id is null or headgate.claim_expired_1(v_row, v_now);
    if v_is_alone then
      exit;
    elsif v_is_new or v_row.state = 'free'
      or (v_row.state = 'in_progress' and not v_row.dispatched and v_row.lease_until <= v_now) then
      -- That transaction could take the record. How long it takes is unknown.
      return jsonb_build_object('kind', 'in_progress', 'now', v_now, 'remaining', 1000);
    end if;
    -- A transaction leaves the record of a key alone if it could not claim it.
    v_is_alone := true;
  end loop;

  if v_is_new then
    if v_command not in ('begin', 'complete') then
      return jsonb_build_object('kind', 'lost', 'now', v_now);
    end if;
    -- The row of an expired record is used again, so only a new row needs room.
    if v_command = 'begin' and (p ->> 'full')::boolean and v_row.id is null then
      v_forgotten := headgate.claim_forget_1(v_id, v_now);
      if v_forgotten is null then
        return jsonb_build_object('kind', 'full', 'now', v_now);
      end if;
    end if;
    v_row.state := 'free';
    v_row.fingerprint := v_fingerprint;
    v_row.owner := '';
    v_row.generation := 0;
    v_row.dispatched := false;
    v_row.inherited := false;
    v_row.status := null;
    v_row.value := null;
    v_row.value_bytes := null;
  elsif v_row.fingerprint <> v_fingerprint then
    if v_command = 'begin' then
      return jsonb_build_object('kind', 'mismatch', 'now', v_now, 'fingerprint', v_row.fingerprint);
    end if;
    return jsonb_build_object('kind', 'lost', 'now', v_now);
  elsif v_row.state = 'completed' then
    if v_command = 'complete' and v_row.owner = v_token then
      return jsonb_build_object('kind', 'ok', 'now', v_now);
    end if;
    return headgate.claim_outcome_1(v_row, p_max_bytes) || jsonb_build_object(
      'kind', case v_command when 'complete' then 'superseded' else 'settled' end, 'now', v_now);
  end if;

  -- A begin, and an abandon whose begin had no reply, do not know the generation.
  v_is_own := v_row.state = 'in_progress' and v_row.owner = v_token
    and (p ->> 'generation' is null or v_row.generation = (p ->> 'generation')::bigint);

  if v_command = 'begin' then
    if v_is_own then
      -- Renews the lease, and nothing else.
    elsif v_row.state = 'in_progress' and v_now < v_row.lease_until then
      return jsonb_build_object('kind', 'in_progress', 'now', v_now, 'remaining', v_row.lease_until - v_now);
    elsif v_row.state = 'in_progress' and v_row.dispatched and p ->> 'onOrphan' = 'reject' then
      return jsonb_build_object('kind', 'orphan', 'now', v_now);
    else
      -- The mark of an earlier owner stays.
      v_row.inherited := v_row.state = 'in_progress' and v_row.dispatched;
      v_row.dispatched := v_row.inherited or (p ->> 'dispatch')::boolean;
      v_row.state := 'in_progress';
      v_row.owner := v_token;
      v_row.generation := v_row.generation + 1;
    end if;
    v_row.lease_until := v_now + (p ->> 'lease')::bigint;
  elsif v_command = 'complete' then
    v_row.state := 'completed';
    v_row.owner := v_token;
    v_row.dispatched := false;
    v_row.inherited := false;
    v_row.lease_until := v_now;
    v_row.status := p ->> 'status';
    v_row.value := p_value;
    v_row.value_bytes := (p ->> 'bytes')::bigint;
  elsif not v_is_own then
    return jsonb_build_object('kind', 'lost', 'now', v_now);
  elsif v_command = 'abandon' then
    v_row.owner := '';
    v_row.lease_until := v_now;
    -- An inherited claim is an orphan again: the earlier owner's effect is still unknown.
    v_made := not v_row.inherited;
    if v_made then
      v_row.state := 'free';
      v_row.dispatched := false;
    end if;
  else
    v_row.lease_until := v_now + (p ->> 'lease')::bigint;
    if v_command = 'dispatch' then
      v_made := v_row.inherited or not v_row.dispatched;
      v_row.dispatched := true;
      v_row.inherited := false;
    end if;
  end if;

  v_row.expires_at := case
    when v_row.state = 'free' then v_now + least(v_retention, (p ->> 'released')::bigint)
    else greatest(v_now + v_retention, v_row.lease_until)
  end;
  if v_row.id is null then
    insert into headgate.claims
      select v_id, p ->> 'scope', p ->> 'key', v_row.state, v_fingerprint, v_row.owner, v_row.generation,
        v_row.dispatched, v_row.inherited, v_row.lease_until, v_row.expires_at, v_row.status, v_row.value,
        v_row.value_bytes
      on conflict (id) do nothing;
    if not found then
      -- Another command inserted it meanwhile.
      return headgate.claim_1(p, p_value, p_max_bytes, p_patience_ms, p_now);
    end if;
  else
    update headgate.claims as c set
      state = v_row.state, fingerprint = v_row.fingerprint, owner = v_row.owner, generation = v_row.generation,
      dispatched = v_row.dispatched, inherited = v_row.inherited, lease_until = v_row.lease_until,
      expires_at = v_row.expires_at, status = v_row.status, value = v_row.value, value_bytes = v_row.value_bytes
      where c.id = v_id;
  end if;
  if v_command = 'begin' then
    return jsonb_build_object('kind', 'claimed', 'now', v_now, 'generation', v_row.generation,
      'inherited', v_row.inherited, 'dispatched', v_row.dispatched and not v_row.inherited,
      'isNew', v_is_new and v_forgotten is null, 'forgotten', nullif(v_forgotten, ''));
  end if;
  return jsonb_build_object('kind', case v_command when 'abandon' then 'released' else 'ok' end, 'now', v_now,
    'made', v_made);
end
$$;

-- Writes the rows of the steps that were made now, by the user's statements.
--   p_steps: of each step: command, scope, key, note, now
--   p_rows: per command, one statement, whose parameter is the list of its steps
create function headgate.write_rows_1(p_steps jsonb[], p_rows jsonb) returns void language plpgsql as $$
declare
  v_command text;
  v_steps jsonb;
  v_message text;
  v_constraint text;
begin
  -- Of one key, several steps can be made in this order only.
  foreach v_command in array array['dispatch', 'abandon', 'complete'] loop
    v_steps := (select jsonb_agg(step) from unnest(p_steps) as step where step ->> 'command' = v_command);
    if v_steps is not null and p_rows ? v_command then
      -- A new snapshot: it sees the rows of every command that this one waited for.
      execute p_rows ->> v_command using v_steps;
    end if;
  end loop;
  -- The error of a deferred constraint belongs to these rows, too.
  set constraints all immediate;
exception when others then
  -- The server failed, or another transaction was in the way.
  if sqlstate ~ '^(25|40|53|55P03|57|58|XX)' then
    raise;
  end if;
  get stacked diagnostics v_message = message_text, v_constraint = constraint_name;
  raise exception 'rows.%: %', v_command, v_message
    using errcode = 'HG003', detail = sqlstate, constraint = v_constraint;
end
$$;

-- Like claims_1, and in the same transaction writes the rows of the commands that carry a note.
create function headgate.claims_2(
  p_commands text, p_value text, p_max_bytes bigint, p_patience_ms bigint, p_now bigint, p_rows text
) returns text language plpgsql as $$
declare
  v_command jsonb;
  v_reply jsonb;
  v_replies text[] := '{}';
  v_steps jsonb[] := '{}';
begin
  perform headgate.begin_1(true, p_patience_ms);
  for v_command in select value from jsonb_array_elements(p_commands::jsonb) loop
    v_reply := headgate.claim_1(
      v_command, coalesce(p_value, v_command ->> 'value'), p_max_bytes, p_patience_ms, p_now);
    v_replies := v_replies || v_reply::text;
    if v_command ? 'note' and (v_reply ->> 'made')::boolean then
      v_steps := array_append(v_steps, jsonb_build_object('command', v_command -> 'command',
        'scope', (v_command ->> 'scope')::jsonb, 'key', (v_command ->> 'key')::jsonb,
        'note', v_command -> 'note', 'now', v_reply -> 'now'));
    end if;
  end loop;
  if cardinality(v_steps) > 0 then
    perform headgate.write_rows_1(v_steps, p_rows::jsonb);
  end if;
  return '[' || array_to_string(v_replies, ',') || ']';
end
$$;

-- Plans the statements of the user, and executes none.
create function headgate.check_rows_1(p_rows text) returns void language plpgsql as $$
declare
  v_command text;
  v_text text;
  v_message text;
begin
  for v_command, v_text in select key, value from jsonb_each_text(p_rows::jsonb) loop
    execute 'explain ' || v_text using '[]'::jsonb;
  end loop;
exception when others then
  if sqlstate ~ '^(40|53|55P03|57|58|XX)' then
    raise;
  end if;
  get stacked diagnostics v_message = message_text;
  raise exception 'rows.%: %', v_command, v_message using errcode = 'HG003', detail = sqlstate;
end
$$;
