-- Remove a worker for good, with the complaints by it and about it.
-- KEYS: workers, leases, expelled, complaints    ARGV: worker
local worker = ARGV[1]
call('SADD', KEYS[3], worker)
call('HDEL', KEYS[1], worker)
call('HDEL', KEYS[2], worker)
for _, complaint in ipairs(call('HKEYS', KEYS[4])) do
  local first, second, names = string.match(complaint, '^(%d+) (%d+) (.*)$')
  local accused = string.sub(names, 1, tonumber(first))
  local reporter = string.sub(names, tonumber(first) + 1, tonumber(first) + tonumber(second))
  if accused == worker or reporter == worker then
    call('HDEL', KEYS[4], complaint)
  end
end
return 1
