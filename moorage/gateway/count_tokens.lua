-- Reads how many tokens an answer cost out of its `usage`, whole or streamed; nothing is held back.
-- Inside generated text the quotes are escaped, so the pattern matches only what the engine says.
-- A stream that has not told its usage yet counts its events: a caller that leaves, or does not ask for
-- the usage, has used that many tokens at least.
local KEPT = 1024
-- What is counted, and its names: of chat and of responses.
local NAMES = {
  prompt_tokens = { "prompt_tokens", "input_tokens" },
  completion_tokens = { "completion_tokens", "output_tokens" },
}

local function set_told(metadata, text, at)
  for counted, names in pairs(NAMES) do
    for _, name in ipairs(names) do
      local count = string.match(text, '"' .. name .. '"%s*:%s*(%d+)', at)
      if count then
        metadata:set("moorage", counted, tonumber(count))
      end
    end
  end
end

local function count_events(text)
  local _, count = string.gsub("\n" .. text, "\ndata: {", "")
  return count
end

function envoy_on_response(handle)
  local kind = handle:headers():get("content-type") or ""
  local counts = string.find(kind, "text/event-stream", 1, true) ~= nil
  local before, events = "", 0
  for chunk in handle:bodyChunks() do
    local bytes = chunk:getBytes(0, chunk:length())
    local text = before .. bytes
    local _, last = string.find(text, '^.*[^\\]"usage"%s*:%s*{')
    if last then
      counts = false
      set_told(handle:streamInfo():dynamicMetadata(), text, last)
    elseif counts then
      events = events + count_events(bytes)
      handle:streamInfo():dynamicMetadata():set("moorage", "completion_tokens", events)
    end
    before = string.sub(text, -KEPT)
  end
end
