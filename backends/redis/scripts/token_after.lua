-- A token is greater than the last one and no smaller than the server's clock in microseconds. So tokens grow even if
-- the last one was lost.
local function token_after(last, clock)
  if last and (#last > #clock or #last == #clock and last >= clock) then return string.format('%.0f', last + 1) end
  return clock
end
