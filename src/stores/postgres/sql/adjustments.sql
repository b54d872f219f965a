-- Adjustments of shared limits, their history, and the processes that obey them.
-- Names and limits are JSON texts: JSON escapes NUL and lone surrogates, which no text of PostgreSQL can contain.

-- The last change. One row, or none before the first change. The nonce is a JSON text.
create table headgate.adjustment_head (
  id boolean primary key default true check (id),
  version bigint not null,
  nonce text not null
);

-- The key is the SHA-256 of the target, because an index limits the length of a key, and an account may be longer.
create table headgate.adjustments (
  target bytea primary key,
  adjustment text not null
);

-- The last changes. The nonce is a JSON text.
create table headgate.adjustment_history (
  version bigint primary key,
  nonce text not null,
  entry text not null
);

-- The processes that said that they live. The id is the SHA-256 of the name. The version and the nonce are those of the
-- change up to which the process obeys the adjustments; null before its first change.
create table headgate.adjustment_processes (
  id bytea primary key,
  name text not null,
  heard_at bigint not null,
  version bigint,
  nonce text
);

-- Notes that a process lives. Processes that were not heard of for ten seconds make room for a new one.
create function headgate.note_process_1(p_name text, p_version bigint, p_nonce text, p_now bigint)
returns void language plpgsql as $$
declare
  -- So many processes are a fault, or an attack.
  v_most constant integer := 1000;
  v_id constant bytea := sha256(convert_to(p_name, 'UTF8'));
begin
  update headgate.adjustment_processes set heard_at = p_now, version = p_version, nonce = p_nonce where id = v_id;
  if found then return; end if;
  -- Leaves out rows that another process changes now, so two of them never wait for each other.
  delete from headgate.adjustment_processes where id in (
    select id from headgate.adjustment_processes where abs(p_now - heard_at) > 10000 for update skip locked
  );
  insert into headgate.adjustment_processes (id, name, heard_at, version, nonce)
    select v_id, p_name, p_now, p_version, p_nonce
    where (select count(*) from headgate.adjustment_processes) < v_most
    on conflict (id) do update
      set heard_at = excluded.heard_at, version = excluded.version, nonce = excluded.nonce;
end
$$;

-- Returns entries older than p_before (null: the last ones), newest first; at most p_limit, and about a megabyte of
-- them, but one at least, if there is one.
create function headgate.adjustment_history_1(p_before bigint, p_limit integer)
returns table (version bigint, entry text) language sql stable as $$
  select sized.version, sized.entry
  from (
    select page.version, page.entry,
      sum(octet_length(page.entry)) over (order by page.version desc) - octet_length(page.entry) as bytes_before
    from (
      select h.version, h.entry from headgate.adjustment_history h
      where p_before is null or h.version < p_before order by h.version desc limit p_limit
    ) as page
  ) as sized
  where sized.bytes_before < 1048576
  order by sized.version desc
$$;

-- Returns what follows the head that a process knows. It is stable, so all its statements see the same moment.
-- The first row has the kind of the reply (none, same, changes or all), and the head as version and value. It is
-- followed by the entries (entry, oldest first), and for `all` by every adjustment (adjustment).
create function headgate.adjustments_after_1(p_version bigint, p_nonce text, p_most integer)
returns table (kind text, version bigint, value text) language plpgsql stable as $$
declare
  v_head headgate.adjustment_head;
  v_count bigint;
  v_bytes bigint;
begin
  select * into v_head from headgate.adjustment_head;
  if not found then
    return query select 'none', 0::bigint, ''::text;
    return;
  end if;
  if v_head.version = p_version and v_head.nonce = p_nonce then
    return query select 'same', v_head.version, v_head.nonce;
    return;
  end if;
  if exists (
    select from headgate.adjustment_history h where h.version = p_version and h.nonce = p_nonce
  ) then
    select count(*), sum(octet_length(h.entry)) into v_count, v_bytes
      from headgate.adjustment_history h where h.version > p_version;
    if v_count between 1 and p_most and v_count = v_head.version - p_version and v_bytes < 1048576 then
      return query select 'changes', v_head.version, v_head.nonce;
      return query select 'entry', h.version, h.entry
        from headgate.adjustment_history h where h.version > p_version order by h.version;
      return;
    end if;
  end if;
  return query select 'all', v_head.version, v_head.nonce;
  return query select 'entry', h.version, h.entry
    from headgate.adjustment_history_1(null, p_most) h order by h.version;
  return query select 'adjustment', 0::bigint, a.adjustment from headgate.adjustments a;
end
$$;

-- Reads what follows the head that a process knows, and notes the process, if it gives its name. See
-- adjustments_after_1. The first row also has the time.
create function headgate.read_adjustments_1(
  p_version bigint, p_nonce text, p_most integer, p_instance text, p_now bigint
) returns table (kind text, now bigint, version bigint, value text) language plpgsql as $$
declare
  v_now constant bigint := coalesce(p_now, headgate.clock_1());
begin
  if p_instance is not null then perform headgate.note_process_1(p_instance, p_version, p_nonce, v_now); end if;
  return query select r.kind, v_now, r.version, r.value from headgate.adjustments_after_1(p_version, p_nonce, p_most) r;
end
$$;

-- Stores a change, or replaces everything (p_is_whole), if the head is still the one that was seen; null: there is no
-- history. Returns false if it is another one. Nothing was changed then.
--   p_entries: [[version, nonce, entry], …], and p_adjustments: [[target, adjustment or null], …], as JSON texts in JSON
create function headgate.write_adjustments_1(
  p_seen_version bigint, p_seen_nonce text, p_version bigint, p_nonce text, p_is_whole boolean, p_most integer,
  p_entries jsonb, p_adjustments jsonb, p_patience_ms bigint
) returns boolean language plpgsql as $$
begin
  perform headgate.begin_1(true, p_patience_ms);
  -- Of several calls with the same head the others wait here for the first one, and then find another head.
  if p_seen_version is null then
    insert into headgate.adjustment_head (version, nonce) values (p_version, p_nonce) on conflict do nothing;
  else
    update headgate.adjustment_head set version = p_version, nonce = p_nonce
      where version = p_seen_version and nonce = p_seen_nonce;
  end if;
  if not found then return false; end if;
  perform headgate.in_time_1(p_patience_ms);
  -- Without a head, the other tables contain a part of an older history at most.
  if p_is_whole or p_seen_version is null then
    delete from headgate.adjustments;
    delete from headgate.adjustment_history;
  end if;
  insert into headgate.adjustment_history (version, nonce, entry)
    select (e ->> 0)::bigint, e ->> 1, e ->> 2 from jsonb_array_elements(p_entries) e
    on conflict (version) do update set nonce = excluded.nonce, entry = excluded.entry;
  delete from headgate.adjustment_history where version <= p_version - p_most;
  with last as (
    select distinct on (a ->> 0) sha256(convert_to(a ->> 0, 'UTF8')) as target, a ->> 1 as adjustment
    from jsonb_array_elements(p_adjustments) with ordinality as each (a, n) order by a ->> 0, n desc
  ), reset as (
    delete from headgate.adjustments where target in (select target from last where adjustment is null)
  )
  insert into headgate.adjustments (target, adjustment)
    select target, adjustment from last where adjustment is not null
    on conflict (target) do update set adjustment = excluded.adjustment;
  return true;
end
$$;

-- Returns the processes that were heard of in the last ten seconds.
create function headgate.adjustment_processes_1(p_now bigint)
returns table (name text, age bigint, version bigint, nonce text) language plpgsql stable as $$
declare
  v_now constant bigint := coalesce(p_now, headgate.clock_1());
begin
  return query select p.name, greatest(0, v_now - p.heard_at), p.version, p.nonce
    from headgate.adjustment_processes p where abs(v_now - p.heard_at) <= 10000;
end
$$;
