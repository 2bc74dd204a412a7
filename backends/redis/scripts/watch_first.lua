-- If dead waiters are left, the watcher checks at once.
local function watch_first(holder) assign_watcher(last_granted or holder, more and 0 or first_expires_in()) end
