-- Note that one worker cannot reach another for a query, or withdraw such a complaint.
-- A complaint's name is `size size accused reporter query` without the last two spaces; the sizes are those of accused
-- and reporter in bytes. Its value is `first latest end`: the first and the latest report, and its expiry.
-- KEYS: workers, complaints    ARGV: reporter, accused, query, reachable, lasts_ms
local reporter, accused, query, reachable = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if call('HEXISTS', KEYS[1], accused) == 0 or call('HEXISTS', KEYS[1], reporter) == 0 then return 0 end
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local all = call('HGETALL', KEYS[2])
for at = 1, #all, 2 do
  if tonumber(string.match(all[at + 1], '%S+$')) < now then call('HDEL', KEYS[2], all[at]) end
end
local complaint = int(#accused) .. ' ' .. int(#reporter) .. ' ' .. accused .. reporter .. query
if reachable == '1' then
  call('HDEL', KEYS[2], complaint)
else
  local first = string.match(call('HGET', KEYS[2], complaint) or int(now), '^%S+')
  call('HSET', KEYS[2], complaint, first .. ' ' .. int(now) .. ' ' .. int(now + tonumber(ARGV[5])))
end
return 1
