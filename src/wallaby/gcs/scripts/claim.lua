-- Complete a slot's re-read and take the next one, one output at a time. A re-read is
-- `stage.channel first end edge edge ...`; its record's key depends on it and shares the query's hash tag.
-- KEYS: query, members, channels, rereads, claims, records (the beginning of their names)
-- ARGV: incarnation, worker, epoch, the claim's name, the completed re-read as `stage.channel seq`, or empty
local refusal = fence(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if refusal then return {refusal} end
local FORM = '^(%S+) (%d+) (%d+)(.*)$'

local function answer(held)
  local channel, first = string.match(held, FORM)
  local record = call('LINDEX', KEYS[6] .. ':' .. channel, first)
  if not record then error('no record for re-read ' .. held) end
  return {'done', held, record}
end

local held = call('HGET', KEYS[5], ARGV[4])
if held and string.match(held, '^%S+ %d+') ~= ARGV[5] then return answer(held) end
local place, waiting = first_reread(KEYS[4], KEYS[3], ARGV[2])
local reply, taken, rest = {'done'}, nil, nil
if waiting then
  local channel, first, last, edges = string.match(waiting, FORM)
  local after = int(tonumber(first) + 1)
  taken = channel .. ' ' .. first .. ' ' .. after .. edges
  rest = after ~= last and channel .. ' ' .. after .. ' ' .. last .. edges
  reply = answer(taken)
end
if held then
  call('HDEL', KEYS[5], ARGV[4])
  call('HINCRBY', KEYS[1], 'version', 1)
end
if taken then
  if rest then
    call('LSET', KEYS[4], place, rest)
  else
    -- Redis removes from a list by value only; an empty text is no re-read.
    call('LSET', KEYS[4], place, '')
    call('LREM', KEYS[4], 1, '')
  end
  call('HSET', KEYS[5], ARGV[4], taken)
  call('HINCRBY', KEYS[1], 'version', 1)
end
return reply
