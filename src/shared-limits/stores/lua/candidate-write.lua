--[[
  Stores the candidate of shadow limits, or removes it.

  Input:
    KEYS[1]  the candidate
    ARGV[1]  its id, or '' for none
    ARGV[2]  its text

  Output: 1
]]

if ARGV[1] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'text', ARGV[2])
end
return 1
