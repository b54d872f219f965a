-- Claims on idempotency keys. `headgate.` stands for the schema's name.

-- Each text that comes from outside is stored as a JSON text: PostgreSQL's own cannot hold every string of JavaScript.
create table headgate.claims (
  -- 16 bytes of the SHA-256 of the scope, and 16 of the SHA-256 of the key: a scope is a range of the index.
  id bytea primary key,
  scope text not null,
  key text not null,
  -- free, in_progress or completed
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
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
-- A dispatched claim without an outcome stays after its retention.
create index claims_by_end on headgate.claims (expires_at) where not (state = 'in_progress' and dispatched);
-- The claims that a full scope may forget.
create index claims_open on headgate.claims (substr(id, 1, 16), expires_at) where state <> 'completed';

-- A transaction that claims a key holds this lock until its end. All schemas of a database share their locks.
create function headgate.claim_lock_1(p_id bytea) returns bigint language sql stable as $$
  select hashtextextended(encode(p_id, 'hex'), 'headgate.claims'::regclass::oid::bigint)
$$;

create function headgate.claim_expired_1(p_row headgate.claims, p_now bigint) returns boolean language sql immutable as $$
  select p_row.expires_at <= p_now and not (p_row.state = 'in_progress' and p_row.dispatched)
$$;

-- The stored outcome as a part of a reply. A value of more bytes is left out; its sender asks for it again.
create function headgate.claim_outcome_1(p_row headgate.claims, p_max_bytes bigint) returns jsonb language sql immutable as $$
  select jsonb_build_object('status', p_row.status, 'bytes', p_row.value_bytes,
    'value', case when p_row.value_bytes <= p_max_bytes then p_row.value end)
$$;

-- Makes room for a new key in a scope that is full (I13): forgets its oldest released key, or else its oldest unknown
-- outcome whose retention is over. Returns null if there is none, '' for a released key, and the forgotten key.
create function headgate.claim_forget_1(p_id bytea, p_now bigint) returns text language plpgsql
  set enable_seqscan = off
as $$
declare
  v_key text;
begin
  delete from headgate.claims as c where c.ctid = any (array(
    select each.ctid from headgate.claims as each
    where substr(each.id, 1, 16) = substr(p_id, 1, 16) and each.state <> 'completed' and each.state = 'free'
    order by each.expires_at limit 1 for update skip locked
  ));
  if found then
    return '';
  end if;
  delete from headgate.claims as c where c.ctid = any (array(
    select each.ctid from headgate.claims as each
    where substr(each.id, 1, 16) = substr(p_id, 1, 16) and each.state <> 'completed' and each.state = 'in_progress'
      and each.dispatched and each.expires_at <= p_now
    order by each.expires_at limit 1 for update skip locked
  )) returning c.key into v_key;
  return v_key;
end
$$;

-- claim_1, which executes one command, is in rows.sql.

-- Executes commands, all or none, and returns their replies as a JSON text. Pass them in the order of their ids, so that
-- no two calls wait for each other.
create function headgate.claims_1(
  p_commands text, p_value text, p_max_bytes bigint, p_patience_ms bigint, p_now bigint
) returns text language plpgsql as $$
declare
  v_command jsonb;
  v_replies text[] := '{}';
begin
  perform headgate.begin_1(true, p_patience_ms);
  for v_command in select value from jsonb_array_elements(p_commands::jsonb) loop
    v_replies := v_replies || headgate.claim_1(
      v_command, coalesce(p_value, v_command ->> 'value'), p_max_bytes, p_patience_ms, p_now)::text;
  end loop;
  return '[' || array_to_string(v_replies, ',') || ']';
end
$$;

-- Claims a key for the current transaction, until its end. A transaction that has claimed the key is waited for.
--   p: id (hex), scope, key, token, fingerprint, retention, full, wait (ms), and idle (ms): after so long without a
--     statement the server ends the transaction, unless it does so earlier
create function headgate.claim_in_transaction_1(p_command text, p_max_bytes bigint, p_now bigint) returns text
  language plpgsql
  set enable_seqscan = off
as $$
declare
  p constant jsonb := p_command::jsonb;
  v_id constant bytea := decode(p ->> 'id', 'hex');
  v_lock constant bigint := headgate.claim_lock_1(v_id);
  v_timeout constant text := current_setting('lock_timeout');
  v_idle constant interval := (p ->> 'idle')::bigint * interval '1 millisecond';
  v_idle_before constant interval := current_setting('idle_in_transaction_session_timeout')::interval;
  v_now bigint;
  v_row headgate.claims;
  v_place tid;
  v_forgotten text;
begin
  -- A host that lost its network or its power would hold the key for hours.
  if v_idle < v_idle_before or (v_idle is not null and v_idle_before = '0') then
    perform set_config('idle_in_transaction_session_timeout', p ->> 'idle', true);
  end if;
  if not pg_try_advisory_xact_lock(v_lock) then
    begin
      perform set_config('lock_timeout', greatest(1, (p ->> 'wait')::bigint)::text, true);
      perform pg_advisory_xact_lock(v_lock);
      perform set_config('lock_timeout', v_timeout, true);
    exception when lock_not_available then
      -- Only this block is rolled back: the transaction can go on.
      return jsonb_build_object('kind', 'in_progress', 'remaining', 1000);
    end;
  end if;
  loop
    v_now := coalesce(p_now, headgate.clock_1());
    if (p ->> 'full')::boolean then
      select * into v_row from headgate.claims as c where c.id = v_id;
      if v_row.id is null then
        v_forgotten := headgate.claim_forget_1(v_id, v_now);
        if v_forgotten is null then
          return jsonb_build_object('kind', 'full');
        end if;
      end if;
    end if;
    -- First the insert: a serializable transaction would conflict with others if it read the index. No other transaction
    -- sees the row before the commit. If that comes without an outcome, the key is used, and its answer is not stored.
    insert into headgate.claims
      values (v_id, p ->> 'scope', p ->> 'key', 'completed', p ->> 'fingerprint', p ->> 'token', 1, false, false,
        v_now, v_now + (p ->> 'retention')::bigint, '"committed"', null, null)
      on conflict (id) do nothing returning ctid into v_place;
    exit when found;
    select * into v_row from headgate.claims as c where c.id = v_id;
    if v_row.id is not null then
      if not headgate.claim_expired_1(v_row, v_now) then
        if v_row.fingerprint <> p ->> 'fingerprint' then
          return jsonb_build_object('kind', 'mismatch', 'fingerprint', v_row.fingerprint);
        elsif v_row.state = 'completed' then
          return headgate.claim_outcome_1(v_row, p_max_bytes) || jsonb_build_object('kind', 'settled', 'owner', v_row.owner);
        elsif v_row.state = 'in_progress' and v_now < v_row.lease_until then
          return jsonb_build_object('kind', 'in_progress', 'remaining', v_row.lease_until - v_now);
        elsif v_row.state = 'in_progress' and v_row.dispatched then
          return jsonb_build_object('kind', 'orphan');
        end if;
      end if;
      -- Takes the record over, unless another command changed it meanwhile.
      update headgate.claims as c set
        state = 'completed', fingerprint = p ->> 'fingerprint', owner = p ->> 'token', generation = v_row.generation + 1,
        dispatched = false, inherited = false, lease_until = v_now, expires_at = v_now + (p ->> 'retention')::bigint,
        status = '"committed"', value = null, value_bytes = null
        where c.id = v_id and c.state = v_row.state and c.generation = v_row.generation and c.expires_at = v_row.expires_at
        returning c.ctid into v_place;
      exit when found;
    end if;
  end loop;
  return jsonb_build_object('kind', 'claimed', 'place', v_place::text, 'xact', pg_current_xact_id()::text,
    'isNew', v_row.id is null and v_forgotten is null, 'forgotten', nullif(v_forgotten, ''));
end
$$;

-- Stores the outcome of a key that claim_in_transaction_1 claimed.
--   p: id (hex), token, status, bytes, place and xact of the claim
-- Returns ok; lost, if the transaction of the claim was rolled back; or ended, if it was committed before this call.
create function headgate.complete_in_transaction_1(p_command text, p_value text) returns text language plpgsql
  set enable_seqscan = off
as $$
declare
  p constant jsonb := p_command::jsonb;
begin
  -- By its place: a serializable transaction would conflict with others if it read the index.
  update headgate.claims as c set
    status = p ->> 'status', value = p_value, value_bytes = (p ->> 'bytes')::bigint
    where c.ctid = (p ->> 'place')::tid and c.id = decode(p ->> 'id', 'hex') and c.owner = p ->> 'token';
  return case when not found then 'lost' when pg_current_xact_id()::text = p ->> 'xact' then 'ok' else 'ended' end;
end
$$;

-- The claim as an operator sees it; null without a record.
create function headgate.inspect_claim_1(p_id text, p_max_bytes bigint, p_now bigint) returns text language plpgsql
  set enable_seqscan = off
as $$
declare
  v_now constant bigint := coalesce(p_now, headgate.clock_1());
  v_row headgate.claims;
begin
  select * into v_row from headgate.claims as c where c.id = decode(p_id, 'hex');
  if v_row.id is null or headgate.claim_expired_1(v_row, v_now) then
    return null;
  end if;
  return headgate.claim_outcome_1(v_row, p_max_bytes) || jsonb_build_object('now', v_now, 'state', v_row.state,
    'fingerprint', v_row.fingerprint, 'owner', v_row.owner, 'generation', v_row.generation,
    'dispatched', v_row.dispatched, 'inherited', v_row.inherited,
    'lease', v_row.lease_until - v_now, 'kept', v_row.expires_at - v_now);
end
$$;

-- A page of all records after an id, in the order of their ids: a record never changes its id.
create function headgate.list_claims_1(p_after text, p_count bigint, p_now bigint) returns text language plpgsql
  set enable_seqscan = off
as $$
declare
  v_now constant bigint := coalesce(p_now, headgate.clock_1());
begin
  return (select coalesce(jsonb_agg(jsonb_build_object('id', encode(page.id, 'hex'), 'scope', page.scope, 'key', page.key,
      'state', page.state, 'generation', page.generation, 'dispatched', page.dispatched, 'inherited', page.inherited,
      'lease', page.lease_until - v_now, 'kept', page.expires_at - v_now, 'status', page.status, 'bytes', page.value_bytes
    )), '[]')::text
    from (select * from headgate.claims as c where c.id > decode(p_after, 'hex') order by c.id limit p_count) as page);
end
$$;

-- How many records a scope has that are not over, up to a number, and in how many milliseconds the first is over.
create function headgate.count_claims_1(p_scope text, p_max bigint, p_now bigint) returns text language plpgsql
  set enable_seqscan = off
as $$
declare
  v_now constant bigint := coalesce(p_now, headgate.clock_1());
begin
  return (select jsonb_build_object('count', count(*), 'first', min(active.expires_at) - v_now)::text from (
    select c.expires_at from headgate.claims as c
    where c.id >= decode(p_scope || repeat('00', 16), 'hex') and c.id <= decode(p_scope || repeat('ff', 16), 'hex')
      and (c.expires_at > v_now or (c.state = 'in_progress' and c.dispatched))
    limit p_max
  ) as active);
end
$$;

-- Deletes some records that are over. It waits for none that is locked, and nothing waits for it.
create function headgate.sweep_claims_1(p_count bigint, p_now bigint) returns bigint language plpgsql
  set enable_seqscan = off
as $$
declare
  v_now constant bigint := coalesce(p_now, headgate.clock_1());
  v_count bigint;
begin
  delete from headgate.claims as c where c.ctid = any (array(
    select each.ctid from headgate.claims as each
    where each.expires_at <= v_now and not (each.state = 'in_progress' and each.dispatched)
    order by each.expires_at limit p_count for update skip locked
  ));
  get diagnostics v_count = row_count;
  return v_count;
end
$$;
