-- One command on the claim of an idempotency key: the table of docs/claims.md, as core/claim.ts has it.
--
-- KEYS       a record for each command
-- ARGV[1]    the time in milliseconds, or '' for this server's own clock
-- then       for each of them begin, extend, dispatch, complete, abandon or inspect, and behind it, but for inspect:
--            the sender's token; the request's fingerprint; how long the record is kept after this command, in milliseconds;
--            begin             lease in milliseconds; reject, reexecute or reconcile; 1 to set the mark with the claim, else 0;
--                              the time past which nothing is to be done, or ''
--            extend, dispatch  lease in milliseconds; generation
--            complete          status; value, or '' where it is not kept
--            abandon           generation, or '' where the sender does not know it
--
-- Reply: the time, then for each command a list (of a single one its parts): a word, and with it
--            claimed            generation, inherited (0 or 1), dispatched by this owner (0 or 1)
--            in_progress        milliseconds that the lease still runs
--            mismatch           fingerprint of the request that the key belongs to
--            settled, superseded  status, value or ''
--            found              the fields of the record, milliseconds of lease, milliseconds until it is forgotten
--            orphan, late, ok, lost, released, absent
--        An empty list stands for a record that is not one of headgate's; a single one is an error.
--
-- The record is one hash, written here and nowhere else, always with its expiry. A text is packed (it starts with = or ~) and never
-- read here, only compared; '' stands for none.

local now, keep = ARGV[1], 0
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
  -- A clock of the caller's does not run with this server's, which counts the expiry down.
  keep = 3600000
end

local find, byte, format, max, call = string.find, string.byte, string.format, math.max, redis.call
local function int(number) return format('%.0f', number) end
local time = int(now)
-- Of the command under way: its key, where its arguments begin, and what stands under the key.
local key, at, found
local token, fingerprint, retention
local state, request, owner, generation, marked, inherited, leaseUntil, keptUntil, status, value
local same

-- Nothing is known of a key with a record that is not ours, so nothing may run.
local function isText(text) return text == '' or (text and (byte(text) == 61 or byte(text) == 126)) end
local function isInteger(text) return text and #text <= 17 and find(text, '^%-?%d+$') end
local function isFlag(text) return text == '0' or text == '1' end
local function isOurs()
  if found.err then return false end
  if not state then return call('EXISTS', key) == 0 end
  return (state == 'in_progress' or state == 'free' or (state == 'completed' and status ~= ''))
    and request ~= '' and isText(request) and isText(owner) and isText(status) and isText(value)
    and isInteger(generation) and isInteger(leaseUntil) and isInteger(keptUntil) and isFlag(marked) and isFlag(inherited)
end

-- Every write says how long the record is kept, in it and as its expiry.
local function write(kept, ...)
  call('HSET', key, 'keptUntil', int(now + kept), ...)
  call('PEXPIRE', key, int(max(keep, kept)))
end
local function settledOrLost()
  if same and state == 'completed' then return { 'settled', status, value } end
  return { 'lost' }
end
-- Fenced by token, generation and fingerprint; a lease that is over does not matter as long as nobody has taken the claim.
local function isOwn(told)
  return same and state == 'in_progress' and owner == token and (told == '' or generation == tonumber(told))
end

local function inspect()
  if not state then return { 'absent' } end
  local lease = 0
  if state == 'in_progress' then lease = max(0, leaseUntil - now) end
  return { 'found', state, request, owner, int(generation), marked, inherited, status, value, int(lease), int(keptUntil - now) }
end

local function claim(lease, kept, mark, inherits)
  local number = int(generation + 1)
  write(kept, 'state', 'in_progress', 'fingerprint', fingerprint, 'owner', token, 'generation', number, 'dispatched', mark,
    'inherited', inherits, 'leaseUntil', int(now + lease), 'status', '', 'value', '')
  return { 'claimed', number, inherits, inherits == '1' and '0' or mark }
end

local function begin(lease, onOrphan, marks, deadline)
  if deadline and now > deadline then return { 'late' } end
  if same and state == 'completed' then return { 'settled', status, value } end
  local kept = max(lease, retention)
  if not state or (state == 'free' and same) then return claim(lease, kept, marks, '0') end
  if not same then return { 'mismatch', request } end
  if owner == token then
    -- Its reply had been lost: the claim stands as it is, mark and all.
    write(kept, 'leaseUntil', int(now + lease))
    return { 'claimed', int(generation), inherited, inherited == '0' and marked or '0' }
  end
  if now < leaseUntil then return { 'in_progress', int(leaseUntil - now) } end
  if marked == '0' then return claim(lease, kept, marks, '0') end
  if onOrphan == 'reject' then return { 'orphan' } end
  return claim(lease, kept, '1', '1')
end

local function renew(command, lease, told)
  if not isOwn(told) then return settledOrLost() end
  if command == 'dispatch' then marked, inherited = '1', '0' end
  write(max(lease, retention), 'leaseUntil', int(now + lease), 'dispatched', marked, 'inherited', inherited)
  return { 'ok' }
end

local function complete(outcome, kept)
  if state and not same then return { 'lost' } end
  if state == 'completed' then
    if owner == token then return { 'ok' } end
    return { 'superseded', status, value }
  end
  -- The first definitive outcome wins, whoever owns the claim by now.
  if state and owner == token and inherited == '0' then
    -- The usual way: the rest stands there already.
    write(retention, 'state', 'completed', 'dispatched', '0', 'leaseUntil', time, 'status', outcome, 'value', kept)
  else
    write(retention, 'state', 'completed', 'fingerprint', fingerprint, 'owner', token, 'generation', int(generation), 'dispatched', '0',
      'inherited', '0', 'leaseUntil', time, 'status', outcome, 'value', kept)
  end
  return { 'ok' }
end

local function abandon(told)
  if not isOwn(told) then return settledOrLost() end
  -- An inherited mark stays, and makes it the orphan that it was: its outcome is still unknown.
  if inherited == '0' then state, marked = 'free', '0' end
  write(retention, 'state', state, 'owner', '', 'dispatched', marked, 'leaseUntil', time)
  return { 'released' }
end

local ARGUMENTS = { begin = 8, extend = 6, dispatch = 6, complete = 6, abandon = 5, inspect = 1 }
local reply = { time }
at = 2
for i = 1, #KEYS do
  key = KEYS[i]
  local command = ARGV[at]
  local size = ARGUMENTS[command]
  if not size then return redis.error_reply('HEADGATE no such command: ' .. command) end
  found = redis.pcall('HMGET', key, 'state', 'fingerprint', 'owner', 'generation', 'dispatched', 'inherited', 'leaseUntil',
    'keptUntil', 'status', 'value')
  if found.err and not find(found.err, '^WRONGTYPE') then return found end
  state, request, owner, generation, marked, inherited, leaseUntil, keptUntil, status, value = unpack(found, 1, 10)
  local own = {}
  if isOurs() then
    token, fingerprint, retention = ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    -- The expiry is hygiene; the record itself says how long it counts.
    if state and now >= tonumber(keptUntil) then state = false end
    if state then
      generation, leaseUntil = tonumber(generation), tonumber(leaseUntil)
    else
      generation = 0
    end
    same = state and size > 1 and request == fingerprint
    if command == 'begin' then
      own = begin(tonumber(ARGV[at + 4]), ARGV[at + 5], ARGV[at + 6], tonumber(ARGV[at + 7]))
    elseif command == 'complete' then
      own = complete(ARGV[at + 4], ARGV[at + 5])
    elseif command == 'abandon' then
      own = abandon(ARGV[at + 4])
    elseif command == 'inspect' then
      own = inspect()
    else
      own = renew(command, tonumber(ARGV[at + 4]), ARGV[at + 5])
    end
  elseif #KEYS == 1 then
    -- The fault names the record, and is no fault of the server's.
    return redis.error_reply('HEADGATE the record ' .. key .. ' is not one of headgate\'s')
  end
  if #KEYS == 1 then return { time, unpack(own) } end
  reply[i + 1] = own
  at = at + size
end
return reply
