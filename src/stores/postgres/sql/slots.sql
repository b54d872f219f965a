-- Slots of requests in flight.

-- The tokens of the slots of one limit, each with the end of its lease. The route is zero for the requests of all routes
-- of an account.
create table headgate.slots (
  account uuid not null,
  route uuid not null,
  token text collate "C" not null,
  ends bigint not null,
  primary key (account, route, token)
);

-- Of the lock under which the slots of an account change.
create function headgate.slots_lock_1(p_account uuid) returns bigint language sql immutable as $$
  select hashtextextended(p_account::text, 7233180926112404)
$$;

-- Holds and releases slots, one after the other.
--   p_accounts, p_routes, p_tokens: of each slot
--   p_leases: of each slot how long it lasts from now on; 0 releases it, otherwise it is taken, or its lease is renewed
--   p_own, p_all: of each slot the most slots of its route, and of all routes of its account; null if these do not count it
-- Output: for each slot whether it is held, and how many slots of its route and of its account there are.
create function headgate.slots_1(
  p_accounts uuid[], p_routes uuid[], p_tokens text[], p_leases bigint[], p_own integer[], p_all integer[],
  p_now bigint, p_patience_ms bigint
) returns text language plpgsql
  -- As in consume_1.
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_zero constant uuid := '00000000-0000-0000-0000-000000000000';
  v_now bigint;
  v_lock bigint;
  v_held boolean;
  v_own bigint;
  v_all bigint;
  v_has_own boolean;
  v_has_all boolean;
  v_reply text[] := '{}';
begin
  -- A slot that a crash of the server forgets comes back with its renewal.
  perform headgate.begin_1(false, p_patience_ms);
  -- In one order, so that no two calls wait for each other.
  for v_lock in select distinct headgate.slots_lock_1(account) from unnest(p_accounts) as account order by 1 loop
    perform pg_advisory_xact_lock(v_lock);
  end loop;
  perform headgate.in_time_1(p_patience_ms);
  v_now := coalesce(p_now, headgate.clock_1());
  for i in 1 .. cardinality(p_accounts) loop
    if p_leases[i] = 0 then
      delete from headgate.slots as s
        where s.account = p_accounts[i] and s.route in (p_routes[i], v_zero) and s.token = p_tokens[i];
      v_reply := v_reply || '0::'::text;
    else
      delete from headgate.slots as s
        where s.account = p_accounts[i] and s.route in (p_routes[i], v_zero) and s.ends <= v_now;
      v_own := null;
      v_all := null;
      v_has_own := false;
      v_has_all := false;
      if p_own[i] is not null then
        select count(*), coalesce(bool_or(s.token = p_tokens[i]), false) into v_own, v_has_own
          from headgate.slots as s where s.account = p_accounts[i] and s.route = p_routes[i];
      end if;
      if p_all[i] is not null then
        select count(*), coalesce(bool_or(s.token = p_tokens[i]), false) into v_all, v_has_all
          from headgate.slots as s where s.account = p_accounts[i] and s.route = v_zero;
      end if;
      v_held := coalesce(v_has_own or v_own < p_own[i], true) and coalesce(v_has_all or v_all < p_all[i], true);
      insert into headgate.slots (account, route, token, ends)
        select p_accounts[i], k.route, p_tokens[i], v_now + p_leases[i]
        from (values (p_routes[i], v_own, v_has_own), (v_zero, v_all, v_has_all)) as k (route, running, has)
        where k.running is not null and (v_held or k.has)
        on conflict (account, route, token) do update set ends = excluded.ends;
      if v_held and not v_has_own then v_own := v_own + 1; end if;
      if v_held and not v_has_all then v_all := v_all + 1; end if;
      v_reply := v_reply || format('%s:%s:%s', v_held::integer, v_own, v_all);
    end if;
  end loop;
  return array_to_string(v_reply, ',');
end
$$;
