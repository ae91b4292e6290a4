-- Note since when one worker cannot reach another, or that it can again.
-- A complaint's name is `size accused reporter` without the second space; size is the accused's in bytes.
-- KEYS: workers, complaints    ARGV: reporter, accused, reachable
redis.replicate_commands()
local reporter, accused, reachable = ARGV[1], ARGV[2], ARGV[3]
if call('HEXISTS', KEYS[1], accused) == 0 or call('HEXISTS', KEYS[1], reporter) == 0 then return 0 end
local complaint = int(#accused) .. ' ' .. accused .. reporter
if reachable == '1' then
  call('HDEL', KEYS[2], complaint)
else
  local now = call('TIME')
  call('HSETNX', KEYS[2], complaint, int(tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)))
end
return 1
