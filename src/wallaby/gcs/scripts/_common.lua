-- Code that all scripts share. It is prepended to each of them when they are loaded.
--
-- Values are plain text: numbers in decimal, several in one value separated by spaces, a free text last.
-- A channel is `stage.channel`, an edge `link.producer.consumer`. `encoding.py` writes and reads the same.

-- INFO and TIME change between calls, so the effects are replicated, not the script.
redis.replicate_commands()
local call = redis.call
local HEAD = 'head'

-- Is this the store that the caller knows? The first argument says which one that is: `run_id replication_id
-- evicted_keys`, and is taken away here. It is compared before anything is read or written, because a connection that was checked
-- when it was made may outlive what was checked: a primary that was demoted and promoted again keeps it.
-- `incarnation.py` does the same.
local function difference(expected)
  local run_id, replication_id, evicted = string.match(expected, '^(%w+) (%w+) (%d+)$')
  local function field(section, name)
    return string.match(call('INFO', section), '\n' .. name .. ':(%w*)') or ''
  end
  local replication = call('INFO', 'replication')
  if string.match(replication, '\nrole:(%w+)') ~= 'master' then return 'it is a replica now' end
  if field('server', 'run_id') ~= run_id then return 'it was restarted or replaced' end
  if string.match(replication, '\nmaster_replid:(%w+)') ~= replication_id then
    return 'it was promoted, or its replication began anew'
  end
  if (tonumber(field('stats', 'evicted_keys')) or 0) > tonumber(evicted) then return 'it has evicted keys' end
  return nil
end

local why = difference(table.remove(ARGV, 1))
if why then return redis.error_reply('WALLABYLOST ' .. why) end

-- By default Lua writes large numbers as 1e+15.
local function int(number)
  return string.format('%.0f', number)
end

-- Why nothing can be done with this query, or nil and its epoch and gate. A query begun in another incarnation of
-- the server may have lost anything since.
local function absent(query, run)
  local held = call('HMGET', query, 'epoch', 'gate', 'run')
  if not held[1] then return 'gone' end
  if held[3] ~= run then return 'lost' end
  return nil, held[1], held[2]
end

-- Why a worker's action must be refused, or nil (invariant 6).
local function fence(query, members, run, worker, epoch)
  local refusal, now, gate = absent(query, run)
  if refusal then return refusal end
  if worker ~= HEAD and call('HEXISTS', members, worker) == 0 then return 'expelled' end
  if gate ~= '1' then return 'frozen' end
  if now ~= epoch then return 'stale' end
  return nil
end

-- `base length final closed split losses since host`, the split `-` if there is none, since in epochs.
local CHANNEL = '^(%d+) (%d+) ([01]) ([01]) (%S+) (%d+) (%d+) (.*)$'

local function read_channel(text, name)
  if not text then error('the query has no channel ' .. name) end
  local base, length, final, closed, split, losses, since, host = string.match(text, CHANNEL)
  return {
    base = base, length = tonumber(length), final = final, closed = closed, split = split, losses = losses,
    since = since, host = host,
  }
end

local function write_channel(c)
  return table.concat({c.base, int(c.length), c.final, c.closed, c.split, c.losses, c.since, c.host}, ' ')
end

local function host_of(text)
  return string.match(text, '^%S+ %S+ %S+ %S+ %S+ %S+ %S+ (.*)$')
end

-- Lua limits the number of arguments of a call.
local CHUNK = 1000

local function in_chunks(command, key, list)
  local replies = {}
  for first = 1, #list, CHUNK do
    local reply = call(command, key, unpack(list, first, math.min(first + CHUNK - 1, #list)))
    if type(reply) == 'table' then
      for _, value in ipairs(reply) do replies[#replies + 1] = value end
    end
  end
  return replies
end

-- Raise the counts of edges, given as edge, count, edge, count; did any rise?
local function raise_delivered(key, list, first, last)
  local raised = false
  for at = first, last, 2 do
    local edge, count = list[at], list[at + 1]
    if tonumber(count) > tonumber(call('HGET', key, edge) or '0') then
      call('HSET', key, edge, count)
      raised = true
    end
  end
  return raised
end

-- The place in the queue of the first re-read of a stage that the worker hosts, and the re-read; or nil.
local function first_reread(rereads, channels, worker)
  if call('LLEN', rereads) == 0 then return nil end
  local hosted = {}
  local all = call('HGETALL', channels)
  for at = 1, #all, 2 do
    if host_of(all[at + 1]) == worker then hosted[string.match(all[at], '^%d+')] = true end
  end
  for place, reread in ipairs(call('LRANGE', rereads, 0, -1)) do
    if hosted[string.match(reread, '^%d+')] then return place - 1, reread end
  end
  return nil
end
