--[[
  Reads the adjustments that a process does not know yet. Notes the process, if it gives its name.

  Input:
    KEYS[1]  the adjustments
    KEYS[2]  the history
    KEYS[3]  the processes
    ARGV[1]  time in milliseconds, or '' for this server's clock
    ARGV[2]  version of the head that the process knows, or ''
    ARGV[3]  nonce of that head, or ''
    ARGV[4]  most entries of the history in the reply
    ARGV[5]  '1' if the process is noted
    ARGV[6]  its name
    ARGV[7]  where the next part of the adjustments begins, or ''. With it, only that part is read

  Output: a list of the time, the kind, and
    same     how many adjustments there are
    none     nothing
    changes  the entries, and how many adjustments there are
    all      the entries, the head, and a part of the adjustments
    part     a part of the adjustments
  A part is where the next one begins (0 after the last one), and a list of each field and its JSON. A field can be in
    several parts, and a part can have what has changed since the one before. If headgate did not write a value, the
    output is an error.

  Values: the adjustments are a hash. The field @head has version and nonce, with a colon between them; each other
    field has the JSON of one adjustment. The history is a stream with the id <version>-0: nonce and JSON of an entry.
    The processes are a hash by name: the time when each was heard of, version and nonce, with colons between them.
]]

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local known = ARGV[2] ~= '' and ARGV[2] .. ':' .. ARGV[3] or ''
local most = tonumber(ARGV[4])

-- Reads adjustments from a cursor on, about a quarter of a megabyte, for the same reason as below.
local function readPart(cursor)
  local fields, bytes = {}, 0
  repeat
    local page = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 100)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      if page[2][i] ~= '@head' then
        fields[#fields + 1] = page[2][i]
        fields[#fields + 1] = page[2][i + 1]
        bytes = bytes + #page[2][i + 1]
      end
    end
  until cursor == '0' or bytes > 262144
  return cursor, fields
end

if ARGV[7] ~= '' then return { now, 'part', readPart(ARGV[7]) } end

-- Makes room for another process, whose predecessor may be gone: those that were not heard of for ten seconds are
-- forgotten.
local function forgetProcesses()
  local processes = redis.call('HGETALL', KEYS[3])
  for i = 1, #processes, 2 do
    local heardAt = tonumber(string.match(processes[i + 1], '^%d+')) or 0
    if now - heardAt > 10000 then redis.call('HDEL', KEYS[3], processes[i]) end
  end
end

if ARGV[5] == '1' then
  -- So many processes are a fault, or an attack.
  local most = 1000
  local isListed = redis.call('HEXISTS', KEYS[3], ARGV[6]) == 1
  if not isListed then forgetProcesses() end
  if isListed or redis.call('HLEN', KEYS[3]) < most then
    redis.call('HSET', KEYS[3], ARGV[6], now .. ':' .. (known == '' and ':' or known))
    redis.call('PEXPIRE', KEYS[3], 3600000)
  end
end

local head = redis.call('HGET', KEYS[1], '@head')
if not head then return { now, 'none' } end
if head == known then return { now, 'same', redis.call('HLEN', KEYS[1]) - 1 } end

-- Reads entries from `from` on, at most `count` and about a megabyte: a server that makes a larger reply serves no
-- decision meanwhile. Also returns whether there are no more.
local function read(command, from, to, step, count)
  local most, page = 1048576, 20
  local entries, bytes = {}, 0
  while #entries < count and bytes < most do
    local found = redis.call(command, KEYS[2], from, to, 'COUNT', page)
    for _, entry in ipairs(found) do
      entries[#entries + 1] = entry
      bytes = bytes + #entry[2][4]
    end
    if #found < page then return entries, #entries <= count end
    from = string.format('%.0f-0', string.match(found[page][1], '^%d+') + step)
  end
  return entries, false
end

if known ~= '' then
  -- One more than needed: the first one is the head that the process knows.
  local entries, isComplete = read('XRANGE', ARGV[2] .. '-0', '+', 1, most + 1)
  if isComplete and #entries > 1 and entries[1][1] == ARGV[2] .. '-0' and entries[1][2][2] == ARGV[3] then
    local list = {}
    for i = 2, #entries do list[#list + 1] = entries[i][2][4] end
    return { now, 'changes', list, redis.call('HLEN', KEYS[1]) - 1 }
  end
end
local entries = read('XREVRANGE', '+', '-', -1, most)
local oldestFirst = {}
for i = math.min(#entries, most), 1, -1 do oldestFirst[#oldestFirst + 1] = entries[i][2][4] end
return { now, 'all', oldestFirst, head, readPart('0') }
