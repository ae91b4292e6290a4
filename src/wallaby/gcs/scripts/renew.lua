-- Renew a worker's lease. 0: it is unknown or expelled.
-- KEYS: workers, leases    ARGV: worker, lease_ms
if call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local now = call('TIME')
call('HSET', KEYS[2], ARGV[1], int(tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) + tonumber(ARGV[2])))
return 1
