-- Counters of limits.

-- The windows of one route of an account. Account and route are the first half of a SHA-256. The windows that all
-- routes of an account share are in a row whose route is zero.
create table headgate.counters (
  account uuid not null,
  route uuid not null,
  -- The minute at which every window is over. It seldom changes, so an update seldom touches an index.
  expires integer not null,
  -- Of each window: its name, when it started, and its count. A name is 4 times the duration in milliseconds, plus 0
  -- for the route's own limit, 1 for All methods, and 2 for All methods of the whole account.
  windows bigint[] not null,
  primary key (account, route)
) with (fillfactor = 85);
create index counters_by_end on headgate.counters (expires);

create function headgate.minute_1(p_ms bigint) returns integer language sql immutable as $$
  select greatest(-2147483648, least(2147483647, (p_ms + 59999) / 60000))::integer
$$;

-- The settings of one transaction. Without p_durable, it does not wait until it is on the disk: a crash of the server
-- forgets its last charges then, of less than a second. No lock is waited for longer than the caller waits.
create function headgate.begin_1(p_durable boolean, p_patience_ms bigint) returns void language plpgsql as $$
begin
  -- After a call waits for a lock, it reads once more; other isolation levels would show it the old state.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the isolation level is "%", and must be "read committed"', current_setting('transaction_isolation')
      using errcode = 'HG001';
  end if;
  perform set_config('lock_timeout', p_patience_ms::text, true);
  if not p_durable then perform set_config('synchronous_commit', 'off', true); end if;
end
$$;

-- Of the lock under which a row of an account is created, or its counters are deleted together with a block.
create function headgate.account_lock_1(p_account uuid) returns bigint language sql immutable as $$
  select hashtextextended(p_account::text, 7233180926112403)
$$;

-- Charges checks. A check is a number of equal requests; as many of them are charged as fit every window.
--   p_accounts, p_routes: of each check. No two checks use the same row.
--   p_own, p_shared: whether the check uses the row of its route, and the row of its account
--   p_costs, p_requests: the cost of each request, and their number; 0 only reads the windows, and -1 is one request
--     that is charged whether it fits or not, also if it is blocked
--   p_sets, p_outs: the window set of each check, and where its windows begin in `counters`, which has p_size numbers
--   p_starts: where each window set begins in p_names and p_maxes, and where the last ends
-- Output: the time; of each window of each check when it started and its count, before the requests, and nothing if it
-- was not read; the blocks of each check, if there are any. After the error HG002 nothing was charged: call again.
create function headgate.consume_1(
  p_accounts uuid[], p_routes uuid[], p_own boolean[], p_shared boolean[], p_costs bigint[], p_requests integer[],
  p_sets integer[], p_outs integer[], p_size integer, p_starts integer[], p_names bigint[], p_maxes bigint[],
  p_now bigint, p_patience_ms bigint, p_durable boolean,
  out now bigint, out counters text, out blocks text
) language plpgsql
  -- The tables can be small when a session plans these statements, and large when it runs them.
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_zero constant uuid := '00000000-0000-0000-0000-000000000000';
  v_todo boolean[] := array_fill(true, array[cardinality(p_accounts)]);
  v_has_blocks boolean;
  v_check record;
  v_rows headgate.counters[];
  v_row headgate.counters;
  v_places tid[];
  v_found bigint[] := array_fill(null::bigint, array[p_size]);
  v_blocks json[];
  v_all bigint[];
  v_length integer;
  v_from integer;
  v_to integer;
  v_at integer;
  v_out integer;
  v_name bigint;
  v_started bigint;
  v_count bigint;
  v_used integer;
  v_fit bigint;
  v_forced boolean;
  v_cost bigint;
  v_starts bigint[];
  v_counts bigint[];
  v_own bigint[];
  v_shared bigint[];
  v_own_end bigint;
  v_shared_end bigint;
  v_self xid;
  v_new integer := 0;
  v_missing integer;
  v_locked integer;
  v_same integer;
begin
  perform headgate.begin_1(p_durable, p_patience_ms);
  v_has_blocks := exists (select from headgate.blocks);
  if v_has_blocks then v_blocks := array_fill(null::json, array[cardinality(p_accounts)]); end if;

  -- First without locks: a rejection writes nothing, and does not wait. If a row changed before it was locked, then
  -- once more with the locks.
  for v_pass in 1 .. 2 loop
    v_rows := '{}';
    v_places := '{}';
    now := null;
    for v_check in
      select k.at::integer, k.account, k.route, k.own, k.shared,
        o.place as own_place, o.windows as own_windows, s.place as shared_place, s.windows as shared_windows,
        b.ends, b.reason, b.route as blocked_route
      from unnest(p_accounts, p_routes, p_own, p_shared, v_todo) with ordinality
        as k (account, route, own, shared, todo, at)
      left join lateral (
        select c.ctid as place, case when c.xmin = v_self then '{}' else c.windows end as windows
        from headgate.counters as c where k.own and c.account = k.account and c.route = k.route limit 1
      ) as o on true
      left join lateral (
        select c.ctid as place, case when c.xmin = v_self then '{}' else c.windows end as windows
        from headgate.counters as c where k.shared and c.account = k.account and c.route = v_zero limit 1
      ) as s on true
      left join lateral (
        select e.ends, e.reason, e.route from headgate.blocks as e
        where v_has_blocks and e.account = k.account and e.route in (v_zero, k.route)
          and e.ends > coalesce(p_now, headgate.clock_1())
        order by e.ends desc limit 1
      ) as b on true
      where k.todo
    loop
      -- After the rows were read, so that none of their windows started later.
      if now is null then now := coalesce(p_now, headgate.clock_1()); end if;
      v_at := v_check.at;
      if v_check.ends > now and p_requests[v_at] > 0 then
        v_blocks[v_at] := json_build_array(v_check.ends - now, v_check.reason, v_check.blocked_route = v_zero);
        v_todo[v_at] := false;
        continue;
      end if;

      v_all := case
        when v_check.shared_windows is null then v_check.own_windows
        when v_check.own_windows is null then v_check.shared_windows
        else v_check.own_windows || v_check.shared_windows
      end;
      v_length := coalesce(cardinality(v_all), 0);
      v_from := p_starts[p_sets[v_at]];
      v_to := p_starts[p_sets[v_at] + 1] - 1;
      v_cost := p_costs[v_at];
      v_forced := p_requests[v_at] = -1;
      v_fit := abs(p_requests[v_at]);
      v_out := p_outs[v_at];
      v_used := 0;
      for j in v_from .. v_to loop
        v_name := p_names[j];
        -- Usually a row has the windows of the window set, in its order.
        v_at := 3 * (j - v_from) + 1;
        if v_at > v_length or v_all[v_at] <> v_name then
          v_at := 1;
          while v_at <= v_length and v_all[v_at] <> v_name loop
            v_at := v_at + 3;
          end loop;
        end if;
        v_started := null;
        v_count := 0;
        if v_at <= v_length then
          v_used := v_used + 1;
          v_started := v_all[v_at + 1];
          v_count := v_all[v_at + 2];
          v_found[v_out] := v_started;
          v_found[v_out + 1] := v_count;
          if now < v_started or now >= v_started + (v_name >> 2) then
            v_started := null;
            v_count := 0;
          end if;
        end if;
        if not v_forced then v_fit := least(v_fit, (p_maxes[j] - v_count) / v_cost); end if;
        exit when v_fit <= 0 and p_requests[v_check.at] > 0;
        v_starts[j] := v_started;
        v_counts[j] := v_count;
        v_out := v_out + 2;
      end loop;
      if v_fit <= 0 then
        v_todo[v_check.at] := false;
        continue when v_pass = 1;
        -- What the first pass inserted goes out again.
        v_fit := 0;
      end if;

      v_own := '{}';
      v_shared := '{}';
      v_own_end := null;
      v_shared_end := null;
      for j in v_from .. v_to loop
        exit when v_fit = 0;
        v_name := p_names[j];
        v_started := coalesce(v_starts[j], now);
        -- A safe integer of JavaScript.
        v_count := least(9007199254740991, v_counts[j] + v_fit * v_cost);
        if v_name & 3 = 2 then
          v_shared := v_shared || array[v_name, v_started, v_count];
          v_shared_end := greatest(v_shared_end, v_started + (v_name >> 2));
        else
          v_own := v_own || array[v_name, v_started, v_count];
          v_own_end := greatest(v_own_end, v_started + (v_name >> 2));
        end if;
      end loop;
      -- The windows of other limits stay until they are over.
      if v_fit = 0 or v_used * 3 < v_length then
        for i in 1 .. v_length by 3 loop
          v_name := v_all[i];
          v_started := v_all[i + 1];
          if now >= v_started and now < v_started + (v_name >> 2)
            and (v_fit = 0 or v_name <> all (p_names[v_from:v_to])) then
            if v_name & 3 = 2 then
              v_shared := v_shared || v_all[i:i + 2];
              v_shared_end := greatest(v_shared_end, v_started + (v_name >> 2));
            else
              v_own := v_own || v_all[i:i + 2];
              v_own_end := greatest(v_own_end, v_started + (v_name >> 2));
            end if;
          end if;
        end loop;
      end if;
      if v_check.own then
        v_row := row (v_check.account, v_check.route, headgate.minute_1(coalesce(v_own_end, now)), v_own);
        v_rows := v_rows || v_row;
        v_places := v_places || v_check.own_place;
      end if;
      if v_check.shared then
        v_row := row (v_check.account, v_zero, headgate.minute_1(coalesce(v_shared_end, now)), v_shared);
        v_rows := v_rows || v_row;
        v_places := v_places || v_check.shared_place;
      end if;
    end loop;
    exit when cardinality(v_rows) = 0;

    if v_pass = 1 then
      -- Every call first inserts and then locks, both in the order of the rows: so no two calls wait for each other.
      v_missing := cardinality(array_positions(v_places, null));
      if v_missing > 0 then
        -- A block with a fresh start does not see the rows that are inserted now, so it waits for them, or they wait for
        -- it and then see the block.
        perform pg_advisory_xact_lock_shared(headgate.account_lock_1(k.account))
          from (
            select distinct k.account from rows from (unnest(v_rows), unnest(v_places))
              as k (account, route, expires, windows, place)
            where k.place is null order by k.account
          ) as k;
        if exists (
          select from unnest(p_accounts, p_routes, p_requests, v_todo) as k (account, route, requests, todo)
          join headgate.blocks as e on e.account = k.account and e.route in (v_zero, k.route)
          where k.todo and k.requests > 0 and e.ends > now
        ) then
          raise exception 'the account was blocked meanwhile' using errcode = 'HG002';
        end if;
        insert into headgate.counters as c (account, route, expires, windows)
          select k.account, k.route, k.expires, k.windows
          from rows from (unnest(v_rows), unnest(v_places)) as k (account, route, expires, windows, place)
          where k.place is null order by k.account, k.route
          on conflict do nothing;
        get diagnostics v_new = row_count;
      end if;
      select count(*), count(*) filter (where locked.is_same) into v_locked, v_same
        from (
          select c.ctid = k.place as is_same
          from rows from (unnest(v_rows), unnest(v_places)) as k (account, route, expires, windows, place)
          join headgate.counters as c on c.account = k.account and c.route = k.route
          where k.place is not null or v_new < v_missing
          order by c.account, c.route for update of c
        ) as locked;
      perform headgate.in_time_1(p_patience_ms);
      if v_locked < cardinality(v_rows) - (case when v_new = v_missing then v_new else 0 end) then
        raise exception 'a row was deleted before it was locked' using errcode = 'HG002';
      end if;
      if v_new + v_same < cardinality(v_rows) then
        -- The rows that this call inserted count as empty.
        v_self := pg_current_xact_id()::xid;
        continue;
      end if;
    end if;

    update headgate.counters as c set windows = k.windows, expires = k.expires
      from rows from (unnest(v_rows), unnest(v_places)) as k (account, route, expires, windows, place)
      where c.ctid = k.place;
    exit;
  end loop;

  -- The table grows only by new rows, so they remove rows that are over: 2.5 per new row, many at a time, because the
  -- search passes over the rows that were removed before. This is the last step, and it leaves out rows that are locked,
  -- so it never waits while others wait for it.
  if random() * 64 < v_new then
    delete from headgate.counters where ctid = any (array(
      select c.ctid from headgate.counters as c where c.expires <= now / 60000
      order by c.expires limit greatest(160, 5 * v_new / 2) for update skip locked
    ));
  end if;
  counters := array_to_string(v_found, ',', '');
  blocks := to_json(v_blocks)::text;
end
$$;
