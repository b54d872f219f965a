-- What every part of headgate shares. `headgate.` stands for the schema's name.

-- One row: the version of the schema, and the oldest version of the library's schema that still works on it.
create table headgate.meta (
  is_only boolean primary key default true check (is_only),
  version integer not null,
  oldest integer not null
);

-- The time in integer milliseconds. now() would be the time at which the transaction began. A call that waited for a
-- lock since then would find windows that started in its future, and those count as over.
create function headgate.clock_1() returns bigint language sql volatile as $$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- Ends a call that waited longer for its locks than its caller waits, so that nothing changes after the caller left.
create function headgate.in_time_1(p_patience_ms bigint) returns void language plpgsql as $$
begin
  if clock_timestamp() - statement_timestamp() > p_patience_ms * interval '1 millisecond' then
    raise exception 'the lock was not free within % ms', p_patience_ms using errcode = 'lock_not_available';
  end if;
end
$$;
