-- Changes of adjustments in a transaction of the user: its own lock_timeout comes back at the end of the call.
alter function headgate.write_adjustments_1(bigint, text, bigint, text, boolean, integer, jsonb, jsonb, bigint)
  set lock_timeout = 0;
