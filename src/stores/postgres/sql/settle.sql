-- Settles charges.

-- The receipts that were settled, each until the minute at which the windows that it changed are over.
create table headgate.receipts (
  receipt text collate "C" primary key,
  ends integer not null
);
create index receipts_by_end on headgate.receipts (ends);

-- Adds p_change to the windows that started at p_started, as far as they are active. Returns whether one was. With a
-- receipt it does so once.
create function headgate.settle_1(
  p_account uuid, p_routes uuid[], p_names bigint[], p_started bigint[], p_change bigint,
  p_receipt text, p_now bigint, p_patience_ms bigint, p_durable boolean
) returns boolean language plpgsql as $$
declare
  v_row record;
  v_now bigint;
  v_windows bigint[];
  v_is_changed boolean;
  v_end bigint;
begin
  perform headgate.begin_1(p_durable, p_patience_ms);
  for v_row in
    select c.ctid as place, c.windows from headgate.counters as c
    where c.account = p_account and c.route = any (p_routes) order by c.account, c.route for update
  loop
    perform headgate.in_time_1(p_patience_ms);
    -- Another call with this receipt was here before, or it waits for this row.
    if v_end is null and p_receipt is not null and exists (select from headgate.receipts where receipt = p_receipt) then
      return false;
    end if;
    v_now := coalesce(p_now, headgate.clock_1());
    v_windows := v_row.windows;
    v_is_changed := false;
    for i in 1 .. cardinality(v_windows) by 3 loop
      for j in 1 .. cardinality(p_names) loop
        if v_windows[i] = p_names[j] and v_windows[i + 1] = p_started[j]
          and v_now >= p_started[j] and v_now < p_started[j] + (p_names[j] >> 2) then
          -- A safe integer of JavaScript, 0 or more.
          v_windows[i + 2] := least(9007199254740991, greatest(0, v_windows[i + 2] + p_change));
          v_is_changed := true;
          v_end := greatest(v_end, p_started[j] + (p_names[j] >> 2));
        end if;
      end loop;
    end loop;
    if v_is_changed then
      update headgate.counters as c set windows = v_windows where c.ctid = v_row.place;
    end if;
  end loop;
  if v_end is not null and p_receipt is not null then
    insert into headgate.receipts (receipt, ends) values (p_receipt, headgate.minute_1(v_end));
    delete from headgate.receipts where ctid = any (array(
      select r.ctid from headgate.receipts as r where r.ends <= v_now / 60000
      order by r.ends limit 4 for update skip locked
    ));
  end if;
  return v_end is not null;
end
$$;
