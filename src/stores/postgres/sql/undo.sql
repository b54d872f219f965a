-- Undoes decisions (S31).

-- Does what settle_1 does. Then windows are over that an undone decision started, if nothing else is counted in them.
--   p_undone: when the decision was made, if it is undone; else null
create function headgate.settle_2(
  p_accounts uuid[], p_routes uuid[], p_own boolean[], p_shared boolean[], p_changes bigint[],
  p_receipts text[], p_untils bigint[], p_undone bigint[], p_starts integer[], p_names bigint[], p_started bigint[],
  p_now bigint, p_patience_ms bigint, p_durable boolean
) returns text language plpgsql
  -- As in consume_1.
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_zero constant uuid := '00000000-0000-0000-0000-000000000000';
  v_row record;
  v_windows bigint[];
  v_settled text := headgate.settle_1(
    p_accounts, p_routes, p_own, p_shared, p_changes, p_receipts, p_untils, p_starts, p_names, p_started,
    p_now, p_patience_ms, p_durable
  );
begin
  for v_at in 1 .. cardinality(p_accounts) loop
    continue when p_undone[v_at] is null;
    -- settle_1 has locked these rows.
    for v_row in
      select c.ctid as place, c.windows from headgate.counters as c
      where c.account = p_accounts[v_at] and c.route = any (
        array[case when p_own[v_at] then p_routes[v_at] end, case when p_shared[v_at] then v_zero end]
      )
    loop
      v_windows := v_row.windows;
      for i in 1 .. cardinality(v_windows) by 3 loop
        if v_windows[i + 1] = p_undone[v_at] and v_windows[i + 2] = 0
          and v_windows[i] = any (p_names[p_starts[v_at] : p_starts[v_at + 1] - 1]) then
          -- A start with which the window is over at any time.
          v_windows[i + 1] := -9007199254740991;
        end if;
      end loop;
      if v_windows <> v_row.windows then
        update headgate.counters as c set windows = v_windows where c.ctid = v_row.place;
      end if;
    end loop;
  end loop;
  return v_settled;
end
$$;
