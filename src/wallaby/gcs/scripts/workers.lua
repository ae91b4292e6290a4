-- Every registered worker with its lease, every complaint, and the store's time.
-- KEYS: workers, leases, complaints    ARGV: none
return {call('TIME'), call('HGETALL', KEYS[1]), call('HGETALL', KEYS[2]), call('HGETALL', KEYS[3])}
