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

local FIELDS = { 'state', 'fingerprint', 'owner', 'generation', 'dispatched', 'inherited', 'leaseUntil', 'keptUntil', 'status', 'value' }

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

local function int(number) return string.format('%.0f', number) end
local function reply(...) return { int(now), ... } end

-- Nothing is known of such a key, so nothing may run: the fault names it, and is no fault of the server's.
local function fault()
  return redis.error_reply('HEADGATE the record ' .. key .. ' is not one of headgate\'s')
end

local found = redis.pcall('HMGET', key, unpack(FIELDS))
if found.err then
  if string.find(found.err, '^WRONGTYPE') then return fault() end
  return found
end
local record = {}
for i, name in ipairs(FIELDS) do record[name] = found[i] end
local state = record.state
if not state then
  if redis.call('EXISTS', key) == 1 then return fault() end
else
  if state ~= 'free' and state ~= 'in_progress' and state ~= 'completed' then return fault() end
  for _, name in ipairs({ 'fingerprint', 'owner', 'status', 'value' }) do
    if not record[name] or not string.find(record[name], '^[=~]') and record[name] ~= '' then return fault() end
  end
  for _, name in ipairs({ 'generation', 'leaseUntil', 'keptUntil' }) do
    if not string.find(record[name] or '', '^%-?%d+$') or #record[name] > 17 then return fault() end
    record[name] = tonumber(record[name])
  end
  for _, name in ipairs({ 'dispatched', 'inherited' }) do
    if record[name] ~= '0' and record[name] ~= '1' then return fault() end
  end
  if record.fingerprint == '' or (state == 'completed' and record.status == '') then return fault() end
  -- The expiry is hygiene; the record itself says how long it counts.
  if now >= record.keptUntil then state, record = nil, { generation = 0 } end
end

local function write(changed, kept)
  local fields = {}
  for _, name in ipairs(FIELDS) do
    local value = changed[name] or record[name] or ''
    if type(value) == 'number' then value = int(value) end
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  fields[16] = int(now + kept)
  redis.call('HSET', key, unpack(fields))
  redis.call('PEXPIRE', key, int(math.max(keep, kept)))
end

if command == 'inspect' then
  if not state then return reply('absent') end
  local lease = 0
  if state == 'in_progress' then lease = math.max(0, record.leaseUntil - now) end
  return reply('found', state, record.fingerprint, record.owner, int(record.generation), record.dispatched, record.inherited,
    record.status, record.value, int(lease), int(record.keptUntil - now))
end

local same = state and record.fingerprint == fingerprint
local function outcome(word) return reply(word, record.status, record.value) end
local function settledOrLost()
  if same and state == 'completed' then return outcome('settled') end
  return reply('lost')
end
-- Fenced by token, generation and fingerprint; a lease that is over does not matter as long as nobody has taken the claim.
local function isOwn(generation)
  return same and state == 'in_progress' and record.owner == token and (generation == '' or record.generation == tonumber(generation))
end

if command == 'begin' then
  local lease, onOrphan, marks, deadline = tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])
  local kept = math.max(lease, retention)
  local function claim(inherits)
    local generation, dispatched, inherited = (record.generation or 0) + 1, marks, '0'
    if inherits then dispatched, inherited = '1', '1' end
    write({
      state = 'in_progress', fingerprint = fingerprint, owner = token, generation = generation, dispatched = dispatched,
      inherited = inherited, leaseUntil = now + lease, status = '', value = '',
    }, kept)
    return reply('claimed', int(generation), inherited, inherits and '0' or marks)
  end
  if deadline and now > deadline then return reply('late') end
  if not state or (state == 'free' and same) then return claim(false) end
  if not same then return reply('mismatch', record.fingerprint) end
  if state == 'completed' then return outcome('settled') end
  if record.owner == token then
    -- Its reply had been lost: the claim stands as it is, mark and all.
    write({ leaseUntil = now + lease }, kept)
    local own = record.inherited == '0' and record.dispatched or '0'
    return reply('claimed', int(record.generation), record.inherited, own)
  end
  if now < record.leaseUntil then return reply('in_progress', int(record.leaseUntil - now)) end
  if record.dispatched == '0' then return claim(false) end
  if onOrphan == 'reject' then return reply('orphan') end
  return claim(true)
end

if command == 'extend' or command == 'dispatch' then
  local lease = tonumber(ARGV[6])
  if not isOwn(ARGV[7]) then return settledOrLost() end
  local changed = { leaseUntil = now + lease }
  if command == 'dispatch' then changed.dispatched, changed.inherited = '1', '0' end
  write(changed, math.max(lease, retention))
  return reply('ok')
end

if command == 'complete' then
  if state and not same then return reply('lost') end
  if state == 'completed' then
    if record.owner == token then return reply('ok') end
    return outcome('superseded')
  end
  -- The first definitive outcome wins, whoever owns the claim by now.
  write({
    state = 'completed', fingerprint = fingerprint, owner = token, generation = record.generation or 0, dispatched = '0',
    inherited = '0', leaseUntil = now, status = ARGV[6], value = ARGV[7],
  }, retention)
  return reply('ok')
end

if command == 'abandon' then
  if not isOwn(ARGV[6]) then return settledOrLost() end
  local changed = { owner = '', leaseUntil = now }
  -- An inherited mark stays, and makes it the orphan that it was: its outcome is still unknown.
  if record.inherited == '0' then changed.state, changed.dispatched = 'free', '0' end
  write(changed, retention)
  return reply('released')
end

return redis.error_reply('HEADGATE no such command: ' .. command)
