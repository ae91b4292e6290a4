-- Remove a worker for good, with the complaints by it and about it.
-- KEYS: workers, leases, expelled, complaints    ARGV: worker
local worker = ARGV[1]
call('SADD', KEYS[3], worker)
call('HDEL', KEYS[1], worker)
call('HDEL', KEYS[2], worker)
for _, complaint in ipairs(call('HKEYS', KEYS[4])) do
  local size, both = string.match(complaint, '^(%d+) (.*)$')
  if string.sub(both, 1, tonumber(size)) == worker or string.sub(both, tonumber(size) + 1) == worker then
    call('HDEL', KEYS[4], complaint)
  end
end
return 1
