-- Create a query. The caller has prepared every value; the script only checks whether the query exists or was barred.
-- KEYS: query, members, channels, links, splits, payload, barred
-- ARGV: incarnation, graph, payload, then four lists, each as its size and its values:
--       members, channels (name, value), links (number, value), splits (stage, value)
if call('EXISTS', KEYS[1]) == 1 then
  return absent(KEYS[1], ARGV[1]) or 'already'
end
if call('EXISTS', KEYS[7]) == 1 then return 'gone' end
local at = 4
local function take()
  local size = tonumber(ARGV[at])
  local list = {}
  for i = 1, size do list[i] = ARGV[at + i] end
  at = at + 1 + size
  return list
end
local members, channels, links, splits = take(), take(), take(), take()
for order, worker in ipairs(members) do call('HSET', KEYS[2], worker, int(order) .. ' 0') end
in_chunks('HSET', KEYS[3], channels)
in_chunks('HSET', KEYS[4], links)
in_chunks('HSET', KEYS[5], splits)
call('SET', KEYS[6], ARGV[3])
call('HSET', KEYS[1], 'epoch', 1, 'gate', 1, 'run', ARGV[1], 'graph', ARGV[2], 'version', 1, 'commits', 0,
  'error', '', 'order', #members)
return 'done'
