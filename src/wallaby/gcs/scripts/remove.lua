-- End a query and delete its keys. The records' keys depend on its channels and share its hash tag.
-- KEYS: query, barred, channels, records (the beginning of their names), then the query's other keys
-- ARGV: for how many milliseconds a submit that comes later is refused; 0: not at all
for _, channel in ipairs(call('HKEYS', KEYS[3])) do call('UNLINK', KEYS[4] .. ':' .. channel) end
call('UNLINK', KEYS[1])
for at = 3, #KEYS do call('UNLINK', KEYS[at]) end
if ARGV[1] ~= '0' then call('SET', KEYS[2], 1, 'PX', ARGV[1]) end
return 'done'
