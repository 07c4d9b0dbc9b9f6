-- Reads the tokens of an answer from its `usage`, whole or streamed, without delaying the answer.
-- Quotes inside generated text are escaped, so the pattern matches only the engine's own fields.
-- Until a stream reports its usage, its events count: a caller that leaves, or does not request the
-- usage, has used at least that many tokens.
local KEPT = 1024
-- The counted fields, with their names in chat completions and in responses.
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
