-- Reads the tokens of an answer from its `usage`, whole or streamed, without delaying the answer.
-- Quotes inside generated text are escaped, so the pattern matches only fields of the engine's JSON. That
-- JSON may repeat the caller's, as the schemas of tools, before the engine's own `usage`: of each event the
-- last `usage` counts, once the event is whole.
-- Each later event counts as a token: a caller that leaves, or does not request the usage, has used at least
-- that many.
local KEPT = 1024
-- A longer count is an engine's error. The sums of many shorter ones stay exact.
local MOST_DIGITS = 9
-- The counted fields, with their names in chat completions and in responses.
local NAMES = {
  prompt_tokens = { "prompt_tokens", "input_tokens" },
  completion_tokens = { "completion_tokens", "output_tokens" },
}

local function reported(text, at, counted)
  for _, name in ipairs(NAMES[counted]) do
    local count = string.match(text, '"' .. name .. '"%s*:%s*(%d+)', at)
    if count and #count <= MOST_DIGITS then
      return tonumber(count)
    end
  end
end

local function after_usage(text)
  local _, last = string.find(text, '^.*[^\\]"usage"%s*:%s*{')
  return last
end

local function count_events(text)
  local _, all = string.gsub("\n" .. text, "\ndata: {", "")
  local _, ends = string.gsub("\n" .. text, '\ndata: {"type": ?"message_stop"', "")
  return all - ends
end

local function set(handle, counted, tokens)
  if tokens then
    handle:streamInfo():dynamicMetadata():set("moorage", counted, tokens)
  end
end

function envoy_on_response(handle)
  local kind = handle:headers():get("content-type") or ""
  local streams = string.find(kind, "text/event-stream", 1, true) ~= nil
  local before, tokens = "", 0
  for chunk in handle:bodyChunks() do
    local bytes = chunk:getBytes(0, chunk:length())
    local text = before .. bytes
    local at = after_usage(streams and string.match(text, "^.*\n") or not streams and text or "")
    local completion = at and reported(text, at, "completion_tokens")
    if streams then
      tokens = (completion or tokens) + count_events(completion and string.sub(text, at) or bytes)
    end
    set(handle, "completion_tokens", streams and tokens or completion)
    set(handle, "prompt_tokens", at and reported(text, at, "prompt_tokens"))
    before = string.sub(text, -KEPT)
  end
end
