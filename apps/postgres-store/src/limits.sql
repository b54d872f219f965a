-- Counters and blocks. `headgate.` stands for the schema of the store.

-- All windows of one route of an account: {"route/60000": [startedAt, count]}. Account and route are SHA-256. If the
-- routes of an account share All methods, its windows are in the account's row, whose route is empty.
create table if not exists headgate.counters (
  account bytea not null,
  route bytea not null,
  windows jsonb not null,
  expires_at bigint not null,
  primary key (account, route)
) with (fillfactor = 80);
create index if not exists counters_of_route on headgate.counters (route);
create index if not exists counters_by_end on headgate.counters (expires_at);

-- The route is empty if the whole account is blocked. The reason is a JSON text.
create table if not exists headgate.blocks (
  account bytea not null,
  route bytea not null,
  reason text,
  expires_at bigint not null,
  primary key (account, route)
);
create index if not exists blocks_by_end on headgate.blocks (expires_at);

-- The time in integer milliseconds. now() would be the time at which the transaction began. A call that waited for a
-- lock since then would find windows that started in its future, and those count as over (S15).
create or replace function headgate.clock() returns bigint language sql volatile as $$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- Waits for the locks of a call, in the given order: every call uses the same order, so no two wait for each other.
-- Locks of rows are not enough, because the first call of an account finds no row.
create or replace function headgate.lock(p_locks bigint[]) returns void language plpgsql as $$
begin
  for i in 1 .. cardinality(p_locks) loop
    perform pg_advisory_xact_lock(p_locks[i]);
  end loop;
end
$$;

-- Ends a call that waited longer for its locks than its caller waits, so that nothing changes after the caller left.
create or replace function headgate.in_time(p_patience_ms bigint) returns void language plpgsql as $$
begin
  if clock_timestamp() - statement_timestamp() > p_patience_ms * interval '1 millisecond' then
    raise exception 'the lock was not free within % ms', p_patience_ms using errcode = 'lock_not_available';
  end if;
end
$$;

-- Decides a request, and charges every window or none (S5). Returns a JSON text: [now, index of the window that rejects
-- or -1, windows, the rest of a block or null, its reason].
--   p_routes, p_rows: the rows that the window set uses, and their names (account, route), in the order of their locks
--   p_in, p_keys, p_durations, p_maxes: of every window, the name of its row, and its own name there
create or replace function headgate.consume(
  p_account bytea, p_routes bytea[], p_rows text[], p_locks bigint[], p_blocked_routes bytea[],
  p_in text[], p_keys text[], p_durations bigint[], p_maxes bigint[], p_cost bigint, p_patience_ms bigint, p_now bigint
) returns text language plpgsql as $$
declare
  v_now bigint;
  v_rows jsonb;
  v_found integer;
  v_block record;
  v_window jsonb;
  v_windows jsonb;
  v_counts bigint[];
  v_rejected_by integer := -1;
begin
  -- First without locks: a rejection changes nothing, so the requests of an account that is over its limit do not wait
  -- for each other, and write nothing.
  for v_pass in 1 .. 2 loop
    if v_pass = 1 then
      select count(*), jsonb_object_agg(case route when '' then 'account' else 'route' end, windows)
        into v_found, v_rows
        from headgate.counters where account = p_account and route = any (p_routes);
    else
      perform headgate.lock(p_locks);
      -- Locks the rows too, because `reset` knows only rows.
      select count(*), jsonb_object_agg(case route when '' then 'account' else 'route' end, windows)
        into v_found, v_rows
        from (
          select route, windows from headgate.counters
          where account = p_account and route = any (p_routes) order by account, route for update
        ) as locked;
      perform headgate.in_time(p_patience_ms);
    end if;
    v_rows := '{"account": {}, "route": {}}' || coalesce(v_rows, '{}');
    -- After the rows were read, so that none of them has started later.
    v_now := coalesce(p_now, headgate.clock());

    if cardinality(p_keys) > 0 then
      select expires_at - v_now as for_ms, reason into v_block from headgate.blocks
        where account = p_account and route = any (p_blocked_routes) and expires_at > v_now
        order by expires_at desc limit 1;
      if found then
        return json_build_array(v_now, -1, '[]'::json, v_block.for_ms, v_block.reason)::text;
      end if;
    end if;

    v_windows := '[]';
    for i in 1 .. cardinality(p_keys) loop
      v_window := v_rows #> array[p_in[i], p_keys[i]];
      v_windows := v_windows || jsonb_build_array(v_window);
      -- Null without an active instance.
      v_counts[i] := case
        when (v_window ->> 0)::bigint <= v_now and v_now < (v_window ->> 0)::bigint + p_durations[i]
        then (v_window ->> 1)::bigint
      end;
      if coalesce(v_counts[i], 0) + p_cost > p_maxes[i] then
        v_rejected_by := i - 1;
        exit;
      end if;
    end loop;
    exit when v_rejected_by >= 0;
  end loop;

  if v_rejected_by < 0 and cardinality(p_keys) > 0 then
    v_windows := '[]';
    for i in 1 .. cardinality(p_keys) loop
      v_window := case
        when v_counts[i] is null then jsonb_build_array(v_now, p_cost)
        else jsonb_build_array(v_rows #> array[p_in[i], p_keys[i], '0'], v_counts[i] + p_cost)
      end;
      v_windows := v_windows || jsonb_build_array(v_window);
      v_rows := jsonb_set(v_rows, array[p_in[i], p_keys[i]], v_window);
    end loop;

    insert into headgate.counters (account, route, windows, expires_at)
      select p_account, used.route, active.windows, active.expires_at
      from unnest(p_routes, p_rows) as used (route, name), lateral (
        select jsonb_object_agg(key, value) as windows, max(ends) as expires_at
        from (
          select key, value, (value ->> 0)::bigint + split_part(key, '/', 2)::bigint as ends
          from jsonb_each(v_rows -> used.name)
        ) as each
        where ends > v_now
      ) as active
      on conflict (account, route) do update set windows = excluded.windows, expires_at = excluded.expires_at;

    -- A table grows only by new rows, so each of them removes some that are over. This is the last step, and it leaves
    -- out rows that are locked, so it never waits while others wait for it.
    if v_found < cardinality(p_routes) then
      delete from headgate.counters where ctid = any (array(
        select ctid from headgate.counters where expires_at <= v_now
        order by expires_at limit 4 for update skip locked
      ));
    end if;
  end if;
  return json_build_array(v_now, v_rejected_by, v_windows, null, null)::text;
end
$$;

-- Adds p_change to the instances that started at p_started, as far as they are active (S13). Returns whether one was.
create or replace function headgate.settle(
  p_account bytea, p_routes bytea[], p_rows text[], p_locks bigint[],
  p_in text[], p_keys text[], p_durations bigint[], p_started bigint[], p_change bigint, p_patience_ms bigint,
  p_now bigint
) returns boolean language plpgsql as $$
declare
  v_now bigint;
  v_rows jsonb;
  v_window jsonb;
  v_count bigint;
  v_is_settled boolean := false;
begin
  perform headgate.lock(p_locks);
  select jsonb_object_agg(case route when '' then 'account' else 'route' end, windows) into v_rows
    from (
      select route, windows from headgate.counters
      where account = p_account and route = any (p_routes) order by account, route for update
    ) as locked;
  perform headgate.in_time(p_patience_ms);
  v_now := coalesce(p_now, headgate.clock());
  for i in 1 .. cardinality(p_keys) loop
    v_window := v_rows #> array[p_in[i], p_keys[i]];
    if (v_window ->> 0)::bigint = p_started[i] and p_started[i] <= v_now and v_now < p_started[i] + p_durations[i] then
      -- A safe integer of JavaScript, 0 or more.
      v_count := least(9007199254740991, greatest(0, (v_window ->> 1)::bigint + p_change));
      v_rows := jsonb_set(v_rows, array[p_in[i], p_keys[i], '1'], to_jsonb(v_count));
      v_is_settled := true;
    end if;
  end loop;
  if v_is_settled then
    update headgate.counters as c set windows = v_rows -> used.name
      from unnest(p_routes, p_rows) as used (route, name)
      where c.account = p_account and c.route = used.route and v_rows ? used.name;
  end if;
  return v_is_settled;
end
$$;

-- The version of these definitions in a database. Raise it, and SCHEMA_VERSION, with every change of them.
create or replace function headgate.version() returns integer language sql immutable as 'select 1';
