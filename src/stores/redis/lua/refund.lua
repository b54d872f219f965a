-- Takes a charge back from the window instances that it came from (S13).
--
-- KEYS       as in consume.lua
-- ARGV[1]    the time in milliseconds, or '' for this server's own clock
-- ARGV[2]    what was charged
-- ARGV[3]    how many of the windows stand in KEYS[1], the first ones
-- ARGV[4..]  for each window: limit ('r' or 'a'), duration in milliseconds, when the instance started
--
-- Reply: how many windows took it back. Creates no key and moves no expiry: a window is written over in its place.

local WINDOW = 'c1ddd'
local WINDOW_SIZE = 25

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cost = tonumber(ARGV[2])
local own = tonumber(ARGV[3])
local refunded = 0

for key = 1, #KEYS do
  local packed = redis.pcall('GET', KEYS[key]) or ''
  local other = type(packed) == 'table'
  if other and not string.find(packed.err, '^WRONGTYPE') then return packed end
  if other or #packed % WINDOW_SIZE ~= 0 then
    return redis.error_reply('HEADGATE the record ' .. KEYS[key] .. ' is not one of headgate\'s')
  end
  for place = 1, #packed, WINDOW_SIZE do
    local limit, duration, start, count = struct.unpack(WINDOW, packed, place)
    for i = 1, (#ARGV - 3) / 3 do
      local inThisKey = (i <= own) == (key == 1)
      local same = ARGV[1 + i * 3] == limit and tonumber(ARGV[2 + i * 3]) == duration and tonumber(ARGV[3 + i * 3]) == start
      if inThisKey and same and now < start + duration then
        redis.call('SETRANGE', KEYS[key], place - 1, struct.pack(WINDOW, limit, duration, start, math.max(0, count - cost)))
        refunded = refunded + 1
      end
    end
  end
end
return refunded
