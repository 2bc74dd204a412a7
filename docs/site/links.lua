-- For pandoc: the title is the first heading, and links between the pages are links between those of the site.
local function is_folder(path)
  local file = io.open(path)
  if not file then return false end
  local _, _, code = file:read(1)
  file:close()
  return code == 21  -- EISDIR
end

function Link(link)
  if link.target:match("^%a+:") then return nil end
  local path, anchor = link.target:match("^([^#]*)(.*)$")
  path = path:gsub("README%.md$", "index.html"):gsub("%.md$", ".html")
  if path ~= "" and is_folder(pandoc.path.directory(PANDOC_STATE.input_files[1]) .. "/" .. path) then
    path = path .. "/index.html"
  end
  link.target = path .. anchor
  return link
end

function Pandoc(document)
  for _, block in ipairs(document.blocks) do
    if block.t == "Header" then
      document.meta.pagetitle = pandoc.utils.stringify(block)
      break
    end
  end
  return document
end

-- Browsers would break a line within the "--" of an option.
function Code(code)
  if code.text:match("^%-") and #code.text < 30 then code.classes:insert("option") end
  return code
end
