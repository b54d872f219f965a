-- Blocks of accounts and of their routes.

-- The route is zero if the whole account is blocked. The reason is a JSON text.
create table headgate.blocks (
  account uuid not null,
  route uuid not null,
  ends bigint not null,
  reason text,
  primary key (account, route)
);
create index blocks_by_end on headgate.blocks (ends);

-- Blocks an account or a route, in place of an earlier block. With p_fresh, the counters of the target are deleted in the
-- same step: no call sees the one without the other.
create function headgate.block_1(
  p_account uuid, p_route uuid, p_for_ms bigint, p_reason text, p_now bigint, p_fresh boolean
) returns void language plpgsql as $$
declare
  v_now bigint;
begin
  if p_fresh then
    perform headgate.begin_1(true, 0);
    perform pg_advisory_xact_lock(headgate.account_lock_1(p_account));
    -- In the order of consume_1.
    perform from headgate.counters as c
      where c.account = p_account and (p_route = '00000000-0000-0000-0000-000000000000' or c.route = p_route)
      order by c.account, c.route for update;
    delete from headgate.counters as c
      where c.account = p_account and (p_route = '00000000-0000-0000-0000-000000000000' or c.route = p_route);
  end if;
  v_now := coalesce(p_now, headgate.clock_1());
  insert into headgate.blocks as b (account, route, ends, reason) values (p_account, p_route, v_now + p_for_ms, p_reason)
    on conflict (account, route) do update set ends = excluded.ends, reason = excluded.reason;
  delete from headgate.blocks where ctid = any (array(
    select b.ctid from headgate.blocks as b where b.ends <= v_now order by b.ends limit 4 for update skip locked
  ));
end
$$;
