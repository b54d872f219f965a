-- Claims on idempotency keys. `headgate.` stands for the schema of the store.

-- Every text that comes from outside is a JSON text: PostgreSQL's own cannot hold each string of JavaScript.
create table if not exists headgate.claims (
  -- SHA-256 of scope and key.
  id bytea primary key,
  scope_id bytea not null,
  scope text not null,
  key text not null,
  state text not null,
  fingerprint text not null,
  owner text not null,
  generation bigint not null,
  dispatched boolean not null,
  inherited boolean not null,
  lease_until bigint not null,
  expires_at bigint not null,
  status text,
  value text,
  value_bytes bigint
) with (fillfactor = 80);
drop index if exists headgate.claims_by_end;
-- A dispatched claim without an outcome stays after its retention.
create index if not exists claims_by_expiry on headgate.claims (expires_at)
  where not (state = 'in_progress' and dispatched);
create index if not exists claims_of_scope on headgate.claims (scope_id, expires_at);

-- Its reply can have other columns in an earlier version.
drop function if exists headgate.claim;

-- Executes one command of the table in docs/claims.md. `reply` is its kind. `now` is for the deadlines of later
-- commands. If p_is_full, a new key is refused: its scope reached its share.
create or replace function headgate.claim(
  p_command text, p_id bytea, p_lock bigint, p_scope_id bytea, p_scope text, p_key text, p_is_full boolean,
  p_token text, p_fingerprint text, p_retention_ms bigint, p_lease_ms bigint, p_generation bigint,
  p_on_orphan text, p_dispatch boolean, p_deadline bigint, p_released_retention_ms bigint,
  p_status text, p_value text, p_value_bytes bigint, p_patience_ms bigint, p_now bigint,
  out reply text, out now text, out is_new boolean, out forgotten text, out record headgate.claims
) language plpgsql as $$
#variable_conflict use_variable
declare
  v_now bigint;
  v_is_own boolean;
begin
  perform headgate.lock(array[p_lock]);
  select * into record from headgate.claims as c where c.id = p_id for update;
  perform headgate.in_time(p_patience_ms);
  -- After the wait for the lock, as in consume.
  v_now := coalesce(p_now, headgate.clock());
  now := v_now;
  is_new := record.id is null;

  if p_command = 'begin' and v_now > p_deadline then
    reply := 'late';
    return;
  end if;

  if is_new or (record.expires_at <= v_now and not (record.state = 'in_progress' and record.dispatched)) then
    if p_command not in ('begin', 'complete') then
      reply := 'lost';
      return;
    end if;
    if p_command = 'begin' and p_is_full then
      -- The scope's oldest unknown outcome goes, if its retention is over (I13).
      delete from headgate.claims as c where c.ctid = any (array(
        select each.ctid from headgate.claims as each
        where each.scope_id = p_scope_id and each.state = 'in_progress' and each.dispatched and each.expires_at <= v_now
        order by each.expires_at limit 1 for update skip locked
      )) returning c.key into forgotten;
      if forgotten is null then
        reply := 'full';
        return;
      end if;
    end if;
    record := null;
    record.id := p_id;
    record.scope_id := p_scope_id;
    record.scope := p_scope;
    record.key := p_key;
    record.state := 'free';
    record.fingerprint := p_fingerprint;
    record.owner := '""';
    record.generation := 0;
    record.dispatched := false;
    record.inherited := false;
  elsif record.fingerprint <> p_fingerprint then
    reply := case p_command when 'begin' then 'mismatch' else 'lost' end;
    return;
  elsif record.state = 'completed' then
    reply := case when p_command <> 'complete' then 'settled' when record.owner = p_token then 'ok' else 'superseded' end;
    return;
  end if;

  -- A begin, and an abandon whose begin had no reply, do not know the generation.
  v_is_own := record.state = 'in_progress' and record.owner = p_token
    and (p_generation is null or record.generation = p_generation);

  if p_command = 'begin' then
    reply := 'claimed';
    if v_is_own then
      -- Renews the lease, and nothing else.
    elsif record.state = 'in_progress' and v_now < record.lease_until then
      reply := 'in_progress';
    elsif record.state = 'in_progress' and record.dispatched and p_on_orphan = 'reject' then
      reply := 'orphan';
    else
      -- The mark of an earlier owner stays.
      record.inherited := record.state = 'in_progress' and record.dispatched;
      record.dispatched := record.inherited or p_dispatch;
      record.state := 'in_progress';
      record.owner := p_token;
      record.generation := record.generation + 1;
    end if;
    if reply <> 'claimed' then
      return;
    end if;
    record.lease_until := v_now + p_lease_ms;
  elsif p_command = 'complete' then
    reply := 'ok';
    record.state := 'completed';
    record.owner := p_token;
    record.dispatched := false;
    record.inherited := false;
    record.lease_until := v_now;
    record.status := p_status;
    record.value := p_value;
    record.value_bytes := p_value_bytes;
  elsif not v_is_own then
    reply := 'lost';
    return;
  elsif p_command = 'abandon' then
    reply := 'released';
    record.owner := '""';
    record.lease_until := v_now;
    -- An inherited claim is an orphan again: what the earlier owner did is still unknown.
    if not record.inherited then
      record.state := 'free';
      record.dispatched := false;
    end if;
  else
    reply := 'ok';
    record.lease_until := v_now + p_lease_ms;
    if p_command = 'dispatch' then
      record.dispatched := true;
      record.inherited := false;
    end if;
  end if;

  record.expires_at := case
    when record.state = 'free' then v_now + least(p_retention_ms, p_released_retention_ms)
    else greatest(v_now + p_retention_ms, record.lease_until)
  end;
  if is_new then
    insert into headgate.claims select record.*;
    -- See consume.
    delete from headgate.claims as c where c.ctid = any (array(
      select each.ctid from headgate.claims as each
      where each.expires_at <= v_now and not (each.state = 'in_progress' and each.dispatched)
      order by each.expires_at limit 4 for update skip locked
    ));
  else
    update headgate.claims as c set
      state = record.state, fingerprint = record.fingerprint, owner = record.owner, generation = record.generation,
      dispatched = record.dispatched, inherited = record.inherited, lease_until = record.lease_until,
      expires_at = record.expires_at, status = record.status, value = record.value, value_bytes = record.value_bytes
      where c.id = p_id;
  end if;
end
$$;
