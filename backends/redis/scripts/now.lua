-- Times are the server's own; clients' clocks are never sent.
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
