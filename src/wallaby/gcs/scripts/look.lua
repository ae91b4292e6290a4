-- A worker's look: every channel, the members, what is delivered over the edges of its own channels, and
-- whether there are re-reads that it could claim.
-- KEYS: query, members, channels, links, delivered, rereads, departed    ARGV: incarnation, worker
local worker = ARGV[2]
local refusal, epoch, gate = absent(KEYS[1], ARGV[1])
if refusal then return {refusal} end
if worker ~= HEAD and call('HEXISTS', KEYS[2], worker) == 0 then
  return {call('HEXISTS', KEYS[7], worker) == 1 and 'expelled' or 'not host'}
end
if gate ~= '1' then return {'frozen', epoch} end

local channels = call('HGETALL', KEYS[3])
local mine = {}
for at = 1, #channels, 2 do
  if host_of(channels[at + 1]) == worker then
    local stage, channel = string.match(channels[at], '^(%d+)%.(%d+)$')
    mine[stage] = mine[stage] or {}
    table.insert(mine[stage], channel)
  end
end
local edges = {}
local links = call('HGETALL', KEYS[4])
for at = 1, #links, 2 do
  local stage, consumers, passes = string.match(links[at + 1], '^(%d+) (%d+) ([01])$')
  for _, producer in ipairs(mine[stage] or {}) do
    local from = links[at] .. '.' .. producer .. '.'
    if passes == '1' then
      edges[#edges + 1] = from .. producer
    else
      for consumer = 0, tonumber(consumers) - 1 do edges[#edges + 1] = from .. int(consumer) end
    end
  end
end
local counts = in_chunks('HMGET', KEYS[5], edges)
for at, count in ipairs(counts) do counts[at] = count or '0' end
local waiting = first_reread(KEYS[6], KEYS[3], worker) and 1 or 0
return {'done', epoch, channels, call('HKEYS', KEYS[2]), edges, counts, waiting}
