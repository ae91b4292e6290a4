-- Announce a worker. 0 if its id belongs to another address or has been expelled.
-- KEYS: workers, leases, expelled, order    ARGV: worker, address, lease_ms
local worker, address, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
if call('SISMEMBER', KEYS[3], worker) == 1 then return 0 end
local known = call('HGET', KEYS[1], worker)
if known and string.match(known, '^%d+ [01] (.*)$') ~= address then return 0 end
local now = call('TIME')
if not known then
  call('HSET', KEYS[1], worker, int(call('INCR', KEYS[4])) .. ' 0 ' .. address)
end
call('HSET', KEYS[2], worker, int(tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) + lease_ms))
return 1
