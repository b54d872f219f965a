-- One command on the claim of an idempotency key: the table of docs/claims.md, as core/claim.ts has it.
--
-- KEYS[1]    the record
-- ARGV[1]    begin, extend, dispatch, complete, abandon or inspect
-- ARGV[2]    the time in milliseconds, or '' for this server's own clock
-- ARGV[3]    the sender's token            (not for inspect, as all that follows)
-- ARGV[4]    the request's fingerprint
-- ARGV[5]    how long the record is kept after this command, in milliseconds
-- ARGV[6..]  begin             lease in milliseconds; reject, reexecute or reconcile; 1 to set the mark with the claim, else 0;
--                              the time past which nothing is to be done, or ''
--            extend, dispatch  lease in milliseconds; generation
--            complete          status; value, or '' where it is not kept
--            abandon           generation, or '' where the sender does not know it
--
-- Reply: the time, a word, and with it
--            claimed            generation, inherited (0 or 1), dispatched by this owner (0 or 1)
--            in_progress        milliseconds that the lease still runs
--            mismatch           fingerprint of the request that the key belongs to
--            settled, superseded  status, value or ''
--            found              the fields of the record, milliseconds of lease, milliseconds until it is forgotten
--            orphan, late, ok, lost, released, absent
--
-- The record is one hash, written here and nowhere else, always with its expiry. A text is packed (it starts with = or ~) and never
-- read here, only compared; '' stands for none.

local key, command, now, keep = KEYS[1], ARGV[1], ARGV[2], 0
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
  -- A clock of the caller's does not run with this server's, which counts the expiry down.
  keep = 3600000
end
local token, fingerprint, retention = ARGV[3], ARGV[4], tonumber(ARGV[5])

local find, byte = string.find, string.byte
local function int(number) return string.format('%.0f', number) end
local time = int(now)

local found = redis.pcall('HMGET', key, 'state', 'fingerprint', 'owner', 'generation', 'dispatched', 'inherited', 'leaseUntil',
  'keptUntil', 'status', 'value')
local state, request, owner, generation, marked, inherited, leaseUntil, keptUntil, status, value = unpack(found)

-- Nothing is known of a key with a record that is not ours, so nothing may run.
local function isText(text) return text == '' or (text and (byte(text) == 61 or byte(text) == 126)) end
local function isInteger(text) return text and #text <= 17 and find(text, '^%-?%d+$') end
local function isFlag(text) return text == '0' or text == '1' end
local function isOurs()
  if found.err then return false end
  if not state then return redis.call('EXISTS', key) == 0 end
  return (state == 'in_progress' or state == 'free' or (state == 'completed' and status ~= ''))
    and request ~= '' and isText(request) and isText(owner) and isText(status) and isText(value)
    and isInteger(generation) and isInteger(leaseUntil) and isInteger(keptUntil) and isFlag(marked) and isFlag(inherited)
end
if found.err and not find(found.err, '^WRONGTYPE') then return found end
if not isOurs() then
  -- The fault names the record, and is no fault of the server's.
  return redis.error_reply('HEADGATE the record ' .. key .. ' is not one of headgate\'s')
end

-- The expiry is hygiene; the record itself says how long it counts.
if state and now >= tonumber(keptUntil) then state = false end
if state then
  generation, leaseUntil = tonumber(generation), tonumber(leaseUntil)
else
  generation = 0
end
local same = state and request == fingerprint

if command == 'inspect' then
  if not state then return { time, 'absent' } end
  local lease = 0
  if state == 'in_progress' then lease = math.max(0, leaseUntil - now) end
  return { time, 'found', state, request, owner, int(generation), marked, inherited, status, value, int(lease), int(keptUntil - now) }
end

-- Every write says how long the record is kept, in it and as its expiry.
local function write(kept, ...)
  redis.call('HSET', key, 'keptUntil', int(now + kept), ...)
  redis.call('PEXPIRE', key, int(math.max(keep, kept)))
end
local function settledOrLost()
  if same and state == 'completed' then return { time, 'settled', status, value } end
  return { time, 'lost' }
end
-- Fenced by token, generation and fingerprint; a lease that is over does not matter as long as nobody has taken the claim.
local function isOwn(told)
  return same and state == 'in_progress' and owner == token and (told == '' or generation == tonumber(told))
end

if command == 'begin' then
  local lease, onOrphan, marks, deadline = tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])
  local kept = math.max(lease, retention)
  local function claim(mark, inherits)
    local number = int(generation + 1)
    write(kept, 'state', 'in_progress', 'fingerprint', fingerprint, 'owner', token, 'generation', number, 'dispatched', mark,
      'inherited', inherits, 'leaseUntil', int(now + lease), 'status', '', 'value', '')
    return { time, 'claimed', number, inherits, inherits == '1' and '0' or mark }
  end
  if deadline and now > deadline then return { time, 'late' } end
  if not state or (state == 'free' and same) then return claim(marks, '0') end
  if not same then return { time, 'mismatch', request } end
  if state == 'completed' then return settledOrLost() end
  if owner == token then
    -- Its reply had been lost: the claim stands as it is, mark and all.
    write(kept, 'leaseUntil', int(now + lease))
    return { time, 'claimed', int(generation), inherited, inherited == '0' and marked or '0' }
  end
  if now < leaseUntil then return { time, 'in_progress', int(leaseUntil - now) } end
  if marked == '0' then return claim(marks, '0') end
  if onOrphan == 'reject' then return { time, 'orphan' } end
  return claim('1', '1')
end

if command == 'extend' or command == 'dispatch' then
  local lease = tonumber(ARGV[6])
  if not isOwn(ARGV[7]) then return settledOrLost() end
  if command == 'dispatch' then marked, inherited = '1', '0' end
  write(math.max(lease, retention), 'leaseUntil', int(now + lease), 'dispatched', marked, 'inherited', inherited)
  return { time, 'ok' }
end

if command == 'complete' then
  if state and not same then return { time, 'lost' } end
  if state == 'completed' then
    if owner == token then return { time, 'ok' } end
    return { time, 'superseded', status, value }
  end
  -- The first definitive outcome wins, whoever owns the claim by now.
  write(retention, 'state', 'completed', 'fingerprint', fingerprint, 'owner', token, 'generation', int(generation), 'dispatched', '0',
    'inherited', '0', 'leaseUntil', time, 'status', ARGV[6], 'value', ARGV[7])
  return { time, 'ok' }
end

if command == 'abandon' then
  if not isOwn(ARGV[6]) then return settledOrLost() end
  -- An inherited mark stays, and makes it the orphan that it was: its outcome is still unknown.
  if inherited == '0' then state, marked = 'free', '0' end
  write(retention, 'state', state, 'owner', '', 'dispatched', marked, 'leaseUntil', time)
  return { time, 'released' }
end

return redis.error_reply('HEADGATE no such command: ' .. command)
