-- Takes a charge back from the window instances that it came from (S13).
--
-- KEYS       the record of the (account, route); where All methods counts once for the account, behind it the shared one
-- ARGV[1]    the time in milliseconds, or '' for this server's own clock
-- ARGV[2]    what was charged
-- ARGV[3]    how many of the windows stand in KEYS[1], the first ones
-- ARGV[4..]  for each window: its name as in a record's head (limit and duration, see consume.lua), and when the instance started
--
-- Reply: how many windows took it back. Creates no key and moves no expiry: a count is written over in its place.

local WINDOW_SIZE = 16

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cost = tonumber(ARGV[2])
local own = tonumber(ARGV[3])
local refunded = 0

for key = 1, #KEYS do
  local packed = redis.pcall('GET', KEYS[key])
  local foreign = type(packed) == 'table'
  if foreign and not string.find(packed.err, '^WRONGTYPE') then return packed end
  local bar = not foreign and packed and string.find(packed, '|', 1, true)
  if foreign or (packed and not bar) then
    return redis.error_reply('HEADGATE the record ' .. KEYS[key] .. ' is not one of headgate\'s')
  end
  local at = bar and bar + 1
  for name in string.gmatch(bar and string.sub(packed, 1, bar - 1) or '', '[ra]%d+') do
    if at + WINDOW_SIZE - 1 > #packed then
      return redis.error_reply('HEADGATE the record ' .. KEYS[key] .. ' is not one of headgate\'s')
    end
    local start, count = struct.unpack('<dd', packed, at)
    for i = 1, (#ARGV - 3) / 2 do
      local inThisKey = (i <= own) == (key == 1)
      if inThisKey and ARGV[2 + i * 2] == name and tonumber(ARGV[3 + i * 2]) == start and now < start + tonumber(string.sub(name, 2)) then
        redis.call('SETRANGE', KEYS[key], at + 7, struct.pack('<d', math.max(0, count - cost)))
        refunded = refunded + 1
      end
    end
    at = at + WINDOW_SIZE
  end
end
return refunded
