--[[
  Executes commands on the claims of idempotency keys. It is the table of docs/claims.md, and the same rule as
  core/claim.ts.

  Input:
    KEYS      for each command the record of its claim
    ARGV[1]   time in milliseconds, or '' for this server's clock
    ARGV[2]   most bytes of a value in the reply; of a longer value the reply only has the length
    then      for each command its arguments:
                inspect
                forget
                begin     token, fingerprint, retention, lease, onOrphan, full, dispatches, deadline
                extend    token, fingerprint, retention, lease, generation
                dispatch  token, fingerprint, retention, lease, generation
                complete  token, fingerprint, retention, status, value
                abandon   token, fingerprint, retention, generation, released
              retention   milliseconds from this command until the record expires
              lease       milliseconds
              onOrphan    reject, reexecute or reconcile
              full        1 if the key's scope may have no new record, else 0
              dispatches  1 to dispatch with the claim, else 0
              deadline    time after which the command does nothing, or ''
              value       '' if it was too large to store
              generation  '' if the sender of abandon does not know it
              released    milliseconds until the record of a released claim expires, if that is before the retention

  Output: a list: the time, then for each command a list. For a single command the parts of its list follow the time
    directly. A command's list is a word and its fields:
      claimed      generation, inherited (0 or 1), dispatched by this owner (0 or 1)
      in_progress  milliseconds until the lease expires
      mismatch     fingerprint of the request that the key belongs to
      settled      status, value; '' if it was not stored, or # and its length
      superseded   status, value, in the same way
      found        the fields of the record; milliseconds until the lease expires, and until the retention is over
      orphaned     released, but an earlier owner's outcome is still unknown
      forgotten    the record of an unknown outcome was deleted; stays if its retention runs; absent if there is none
      orphan, late, full, ok, lost, released, absent
    If headgate did not write a record, the list is empty; for a single command, the output is an error.

  Record: a hash. Only this script writes it, always together with its expiry. A dispatched claim without an outcome has
    none: it stays until it is resolved. Texts are packed: they start with = or ~, and '' is no text. This script only
    compares them.
    A released claim is a string instead, because it takes a third of the memory: 'free', its generation, its keptUntil
    and its fingerprint, with a bar between them.
]]

local LARGEST_INTEGER = 9007199254740991

local now, minExpiry, maxValue = ARGV[1], 0, tonumber(ARGV[2])
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(now)
  -- This server counts expiries by its own clock, which the caller's clock can differ from.
  minExpiry = 3600000
end

local find, byte, format, call = string.find, string.byte, string.format, redis.call
local max, min, abs = math.max, math.min, math.abs
local function int(number) return format('%.0f', number) end
local time = int(now)

-- The current command: its key, the fields of its record as Redis returned them, whether the record is a string, and
-- the command's first arguments.
local key, fields, isString
local token, fingerprint, retention
-- The fields of the record. `state` is false if the key is without a record.
local state, recordFingerprint, owner, generation, dispatched, inherited, leaseUntil, keptUntil, status, value
-- Whether the fingerprints of the record and the command are equal.
local isSame

local function isText(text) return text == '' or (text and (byte(text) == 61 or byte(text) == 126)) end
-- A larger number could not be told from its neighbours; a larger generation could not grow.
local function isInteger(text)
  return text and #text <= 17 and find(text, '^%-?%d+$') and abs(tonumber(text)) < LARGEST_INTEGER
end
local function isFlag(text) return text == '0' or text == '1' end

-- Reads the record of a released claim. Returns false if the string is not such a record.
local function readReleased()
  local packed = redis.pcall('GET', key)
  if type(packed) ~= 'string' then return false end
  generation, keptUntil, recordFingerprint = string.match(packed, '^free|(%d+)|(%-?%d+)|(.+)$')
  state, owner, dispatched, inherited, leaseUntil, status, value = 'free', '', '0', '0', '0', '', ''
  return generation ~= nil
end

-- Whether headgate wrote the record, or the key is free. Nothing is known about other records, so nothing may run.
local function isValid()
  if fields.err then
    isString = readReleased()
    if not isString then return false end
  end
  if not state then return call('EXISTS', key) == 0 end
  return (state == 'in_progress' or state == 'free' or (state == 'completed' and status ~= ''))
    and recordFingerprint ~= '' and isText(recordFingerprint) and isText(owner) and isText(status) and isText(value)
    and isInteger(generation) and isInteger(leaseUntil) and isInteger(keptUntil)
    and isFlag(dispatched) and isFlag(inherited)
end

--[[
  Writes fields of the record. Every write also sets its expiry.

  Input:
    lifetime    milliseconds until the retention is over
    unresolved  1 if the claim is dispatched from now on, without an outcome: then it does not expire, else 0
    ...         names and values of the fields
]]
local function write(lifetime, unresolved, ...)
  if isString then call('DEL', key) end
  call('HSET', key, 'keptUntil', int(now + lifetime), ...)
  if unresolved == '1' then call('PERSIST', key)
  else call('PEXPIRE', key, int(max(minExpiry, lifetime))) end
end

-- The value as the reply shows it. The sender asks for a long one again, over a connection for long values.
local function shownValue()
  if #value <= maxValue then return value end
  return '#' .. #value
end

-- The reply to a sender that does not own the claim.
local function settledOrLost()
  if isSame and state == 'completed' then return { 'settled', status, shownValue() } end
  return { 'lost' }
end

--[[
  Whether the sender owns the claim: token, generation and fingerprint must match, so that a stale owner cannot write.
  An expired lease does not matter as long as no other attempt has taken the claim over.

  Input:
    claimGeneration  generation of the sender's claim, '' if it does not know it
]]
local function isOwn(claimGeneration)
  return isSame and state == 'in_progress' and owner == token
    and (claimGeneration == '' or generation == tonumber(claimGeneration))
end

local function inspect()
  if not state then return { 'absent' } end
  local lease = 0
  if state == 'in_progress' then lease = max(0, leaseUntil - now) end
  return { 'found', state, recordFingerprint, owner, int(generation), dispatched, inherited, status, shownValue(),
    int(lease), int(max(0, keptUntil - now)) }
end

-- Deletes the record of an unknown outcome whose retention is over, and so its lease.
local function forget()
  if state ~= 'in_progress' or dispatched == '0' then return { 'absent' } end
  if now < tonumber(keptUntil) then return { 'stays' } end
  call('DEL', key)
  return { 'forgotten' }
end

--[[
  Gives the claim to the sender.

  Input:
    lease       milliseconds
    lifetime    milliseconds until the record expires
    dispatches  1 if the record is dispatched from now on
    inherits    1 if an earlier owner has dispatched it
]]
local function claim(lease, lifetime, dispatches, inherits)
  local number = int(generation + 1)
  write(lifetime, dispatches, 'state', 'in_progress', 'fingerprint', fingerprint, 'owner', token, 'generation', number,
    'dispatched', dispatches, 'inherited', inherits, 'leaseUntil', int(now + lease), 'status', '', 'value', '')
  return { 'claimed', number, inherits, inherits == '1' and '0' or dispatches }
end

local function begin(lease, onOrphan, full, dispatches, deadline)
  if deadline and now > deadline then return { 'late' } end
  if isSame and state == 'completed' then return { 'settled', status, shownValue() } end
  local lifetime = max(lease, retention)
  if full == '1' and not state then return { 'full' } end
  if not state or (state == 'free' and isSame) then return claim(lease, lifetime, dispatches, '0') end
  if not isSame then return { 'mismatch', recordFingerprint } end
  if owner == token then
    -- The owner repeats a `begin` whose reply was lost. The claim stays as it is, dispatched or not.
    write(lifetime, dispatched, 'leaseUntil', int(now + lease))
    return { 'claimed', int(generation), inherited, inherited == '0' and dispatched or '0' }
  end
  if now < leaseUntil then return { 'in_progress', int(leaseUntil - now) } end
  if dispatched == '0' then return claim(lease, lifetime, dispatches, '0') end
  if onOrphan == 'reject' then return { 'orphan' } end
  return claim(lease, lifetime, '1', '1')
end

-- The commands extend and dispatch.
local function renew(command, lease, claimGeneration)
  if not isOwn(claimGeneration) then return settledOrLost() end
  if command == 'dispatch' then dispatched, inherited = '1', '0' end
  write(max(lease, retention), dispatched, 'leaseUntil', int(now + lease), 'dispatched', dispatched, 'inherited', inherited)
  return { 'ok' }
end

local function complete(newStatus, newValue)
  if state and not isSame then return { 'lost' } end
  if state == 'completed' then
    if owner == token then return { 'ok' } end
    return { 'superseded', status, shownValue() }
  end
  -- The first outcome wins, even if another attempt owns the claim by now.
  if state and owner == token and inherited == '0' then
    -- The usual case: the other fields already hold these values.
    write(retention, '0', 'state', 'completed', 'dispatched', '0', 'leaseUntil', time,
      'status', newStatus, 'value', newValue)
  else
    write(retention, '0', 'state', 'completed', 'fingerprint', fingerprint, 'owner', token, 'generation', int(generation),
      'dispatched', '0', 'inherited', '0', 'leaseUntil', time, 'status', newStatus, 'value', newValue)
  end
  return { 'ok' }
end

local function abandon(claimGeneration, released)
  if not isOwn(claimGeneration) then return settledOrLost() end
  if inherited == '1' then
    -- The claim becomes an orphan again: the earlier owner's effect is still unknown.
    write(retention, '1', 'owner', '', 'leaseUntil', time)
    return { 'orphaned' }
  else
    local lifetime = min(released, retention)
    local packed = table.concat({ 'free', int(generation), int(now + lifetime), fingerprint }, '|')
    if lifetime <= 0 then call('DEL', key)
    else call('SET', key, packed, 'PX', int(max(minExpiry, lifetime))) end
  end
  return { 'released' }
end

-- How many arguments each command takes, its name included.
local ARGUMENTS = { begin = 9, extend = 6, dispatch = 6, complete = 6, abandon = 6, inspect = 1, forget = 1 }
local replies = { time }
local at = 3
for i = 1, #KEYS do
  key = KEYS[i]
  local command = ARGV[at]
  local size = ARGUMENTS[command]
  if not size then return redis.error_reply('HEADGATE unknown command: ' .. command) end
  fields = redis.pcall('HMGET', key, 'state', 'fingerprint', 'owner', 'generation', 'dispatched', 'inherited',
    'leaseUntil', 'keptUntil', 'status', 'value')
  if fields.err and not find(fields.err, '^WRONGTYPE') then return fields end
  state, recordFingerprint, owner, generation, dispatched, inherited, leaseUntil, keptUntil, status, value =
    unpack(fields, 1, 10)
  isString = false
  local reply = {}
  if isValid() then
    token, fingerprint, retention = ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    -- The expiry only saves memory: keptUntil says how long the record counts. An unknown outcome stays.
    if state and now >= tonumber(keptUntil) and not (state == 'in_progress' and dispatched == '1') then state = false end
    if state then
      generation, leaseUntil = tonumber(generation), tonumber(leaseUntil)
    else
      generation = 0
    end
    isSame = state and size > 1 and recordFingerprint == fingerprint
    if command == 'begin' then
      reply = begin(tonumber(ARGV[at + 4]), ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], tonumber(ARGV[at + 8]))
    elseif command == 'complete' then
      reply = complete(ARGV[at + 4], ARGV[at + 5])
    elseif command == 'abandon' then
      reply = abandon(ARGV[at + 4], tonumber(ARGV[at + 5]))
    elseif command == 'inspect' then
      reply = inspect()
    elseif command == 'forget' then
      reply = forget()
    else
      reply = renew(command, tonumber(ARGV[at + 4]), ARGV[at + 5])
    end
  elseif #KEYS == 1 then
    -- The error names the record, because only this record is at fault, not the server.
    return redis.error_reply('HEADGATE the record ' .. key .. ' was not written by headgate')
  end
  if #KEYS == 1 then return { time, unpack(reply) } end
  replies[i + 1] = reply
  at = at + size
end
return replies
