-- Cooldowns of accounts and of their routes. core/cooldown.ts has the rule. The mark of a cooldown is a row of the blocks
-- under a route of its own, which no request names. Its reason is how many answers in a row were refusals, a space, and
-- until when a request tries.

-- Changes a cooldown. p_reason is the reason of its block. p_numbers are in milliseconds:
--   start: how long the provider asks for, or -1; the first pause if it does not; the longest doubled pause; the longest
--     pause; 1 of the request that tries, else 0; the largest number in a row; how long the mark stays after the pause
--   probe: how long the others are blocked at a time; how long the request may try; how long the mark stays after that
-- Output: the state of the cooldown, and the length of the pause that starts.
create function headgate.cooldown_1(
  p_account uuid, p_route uuid, p_mark uuid, p_kind text, p_reason text, p_numbers bigint[], p_now bigint,
  out state text, out pause_ms bigint
) language plpgsql as $$
declare
  v_now bigint;
  v_block headgate.blocks;
  v_mark headgate.blocks;
  v_in_a_row integer;
  v_probe_until bigint;
begin
  perform headgate.begin_1(true, 0);
  perform pg_advisory_xact_lock(headgate.account_lock_1(p_account));
  v_now := coalesce(p_now, headgate.clock_1());
  select * into v_block from headgate.blocks as b
    where b.account = p_account and b.route = p_route and b.ends > v_now for update;
  select * into v_mark from headgate.blocks as b
    where b.account = p_account and b.route = p_mark and b.ends > v_now for update;
  v_in_a_row := coalesce(split_part(v_mark.reason, ' ', 1)::integer, 0);
  v_probe_until := coalesce(split_part(v_mark.reason, ' ', 2)::bigint, 0);
  state := 'open';
  pause_ms := 0;
  if p_kind = 'start' then
    if v_block.ends is not null and not (p_numbers[5] = 1 and v_block.reason is not distinct from p_reason) then
      state := 'blocked';
      return;
    end if;
    state := 'started';
    pause_ms := least(p_numbers[4], case when p_numbers[1] >= 0 then p_numbers[1]
      else least(p_numbers[3], p_numbers[2]::numeric * 2 ^ v_in_a_row)::bigint end);
    perform headgate.put_block_1(p_account, p_route, v_now + pause_ms, p_reason);
    perform headgate.put_block_1(p_account, p_mark, v_now + pause_ms + p_numbers[7],
      least(v_in_a_row + 1, p_numbers[6]) || ' 0');
  elsif v_mark.ends is null then
    return;
  elsif p_kind = 'end' then
    delete from headgate.blocks as b where b.account = p_account
      and (b.route = p_mark or (b.route = p_route and b.reason is not distinct from p_reason));
  elsif v_block.ends is not null then
    state := 'blocked';
    return;
  elsif v_probe_until > 0 and v_probe_until <= v_now then
    delete from headgate.blocks as b where b.account = p_account and b.route = p_mark;
  else
    state := case when v_probe_until > v_now then 'blocked' else 'probe' end;
    perform headgate.put_block_1(p_account, p_route, v_now + p_numbers[1], p_reason);
    if state = 'probe' then
      perform headgate.put_block_1(p_account, p_mark, v_now + p_numbers[2] + p_numbers[3],
        v_in_a_row || ' ' || (v_now + p_numbers[2]));
    end if;
  end if;
  delete from headgate.blocks where ctid = any (array(
    select b.ctid from headgate.blocks as b where b.ends <= v_now order by b.ends limit 4 for update skip locked
  ));
end
$$;

create function headgate.put_block_1(p_account uuid, p_route uuid, p_ends bigint, p_reason text)
returns void language sql as $$
  insert into headgate.blocks as b (account, route, ends, reason) values (p_account, p_route, p_ends, p_reason)
    on conflict (account, route) do update set ends = excluded.ends, reason = excluded.reason
$$;
