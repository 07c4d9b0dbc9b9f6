-- Reads how many tokens an answer cost out of its `usage`, whole or streamed; nothing is held back.
-- Inside generated text the quotes are escaped, so the pattern matches only what the engine says.
local KEPT = 1024
local NAMES = { "prompt_tokens", "completion_tokens" }

function envoy_on_response(handle)
  local before = ""
  for chunk in handle:bodyChunks() do
    local text = before .. chunk:getBytes(0, chunk:length())
    local _, last = string.find(text, '^.*[^\\]"usage"%s*:%s*{')
    if last then
      local metadata = handle:streamInfo():dynamicMetadata()
      for _, name in ipairs(NAMES) do
        local count = string.match(text, '"' .. name .. '"%s*:%s*(%d+)', last)
        if count then
          metadata:set("moorage", name, tonumber(count))
        end
      end
    end
    before = string.sub(text, -KEPT)
  end
end
