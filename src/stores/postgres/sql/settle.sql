-- Settles charges.

-- The receipts that were settled, each until the second from which on it changes nothing anyway. Seconds, because the
-- index stores equal numbers once.
create table headgate.receipts (
  ends bigint not null,
  receipt text collate "C" primary key
);
create index receipts_by_end on headgate.receipts (ends);

-- Settles charges of several decisions, which do not affect each other.
--   p_accounts, p_routes: of each decision
--   p_own, p_shared: whether it was charged in the row of its route, and in the row of its account
--   p_changes: is added to the windows that it charged, as far as they are active
--   p_receipts: with a receipt, it is settled once
--   p_untils: the last millisecond in which it changes something
--   p_starts: where the windows of each decision begin in p_names and p_started, and where the last end
-- Output: for each decision 1 if a window was active, or 0.
create function headgate.settle_1(
  p_accounts uuid[], p_routes uuid[], p_own boolean[], p_shared boolean[], p_changes bigint[],
  p_receipts text[], p_untils bigint[], p_starts integer[], p_names bigint[], p_started bigint[],
  p_now bigint, p_patience_ms bigint, p_durable boolean
) returns text language plpgsql
  -- As in consume_1.
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_zero constant uuid := '00000000-0000-0000-0000-000000000000';
  v_row record;
  v_now bigint;
  v_known text[];
  v_routes uuid[];
  v_windows bigint[];
  v_is_changed boolean;
  v_end bigint;
  v_receipts text[] := '{}';
  v_ends bigint[] := '{}';
  v_settled text := '';
begin
  perform headgate.begin_1(p_durable, p_patience_ms);
  -- In the order of consume_1, so that no two calls wait for each other. Rows that others create later have no instance
  -- of these decisions.
  perform from headgate.counters as c
    join (
      select k.account, k.route from unnest(p_accounts, p_routes, p_own) as k (account, route, own) where k.own
      union
      select k.account, v_zero from unnest(p_accounts, p_shared) as k (account, shared) where k.shared
    ) as k on c.account = k.account and c.route = k.route
    order by c.account, c.route for update of c;
  perform headgate.in_time_1(p_patience_ms);
  v_now := coalesce(p_now, headgate.clock_1());
  -- Another call with one of these receipts was here before, or it waits for the rows.
  v_known := array(select r.receipt from headgate.receipts as r where r.receipt = any (p_receipts));
  for v_at in 1 .. cardinality(p_accounts) loop
    v_end := null;
    if v_now <= p_untils[v_at] and (p_receipts[v_at] is null or p_receipts[v_at] <> all (v_known)) then
      v_routes := array[case when p_own[v_at] then p_routes[v_at] end, case when p_shared[v_at] then v_zero end];
      for v_row in
        select c.ctid as place, c.windows from headgate.counters as c
        where c.account = p_accounts[v_at] and c.route = any (v_routes)
      loop
        v_windows := v_row.windows;
        v_is_changed := false;
        for i in 1 .. cardinality(v_windows) by 3 loop
          for j in p_starts[v_at] .. p_starts[v_at + 1] - 1 loop
            if v_windows[i] = p_names[j] and v_windows[i + 1] = p_started[j]
              and v_now >= p_started[j] and v_now < p_started[j] + (p_names[j] >> 2) then
              -- A safe integer of JavaScript, 0 or more.
              v_windows[i + 2] := least(9007199254740991, greatest(0, v_windows[i + 2] + p_changes[v_at]));
              v_is_changed := true;
              v_end := greatest(v_end, p_started[j] + (p_names[j] >> 2));
            end if;
          end loop;
        end loop;
        if v_is_changed then
          update headgate.counters as c set windows = v_windows where c.ctid = v_row.place;
        end if;
      end loop;
    end if;
    if v_end is not null and p_receipts[v_at] is not null then
      v_known := v_known || p_receipts[v_at];
      v_receipts := v_receipts || p_receipts[v_at];
      v_ends := v_ends || (least(v_end, p_untils[v_at] + 1) + 999) / 1000;
    end if;
    v_settled := v_settled || case when v_end is null then '0' else '1' end;
  end loop;
  if cardinality(v_receipts) > 0 then
    insert into headgate.receipts (ends, receipt) select * from unnest(v_ends, v_receipts);
    -- The table grows only by new rows, so they remove rows that are over.
    delete from headgate.receipts where ctid = any (array(
      select r.ctid from headgate.receipts as r where r.ends <= v_now / 1000
      order by r.ends limit 4 * cardinality(v_receipts) for update skip locked
    ));
  end if;
  return v_settled;
end
$$;
