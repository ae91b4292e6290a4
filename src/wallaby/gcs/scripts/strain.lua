-- Note that a worker is short of memory, most of which the query takes, or withdraw the note.
-- KEYS: query, members    ARGV: incarnation, worker, 1 or 0
local refusal = absent(KEYS[1], ARGV[1])
if refusal then return refusal end
if call('HEXISTS', KEYS[2], ARGV[2]) == 0 then return 'expelled' end
if ARGV[3] == '1' then
  call('HSET', KEYS[1], 'strained ' .. ARGV[2], 1)
else
  call('HDEL', KEYS[1], 'strained ' .. ARGV[2])
end
return 'done'
