-- Reads how many tokens an answer cost out of its `usage`, whole or streamed; nothing is held back.
-- Inside generated text the quotes are escaped, so the pattern matches only what the engine says.
local KEPT = 1024
-- What is counted, and its names: of chat and of responses.
local NAMES = {
  prompt_tokens = { "prompt_tokens", "input_tokens" },
  completion_tokens = { "completion_tokens", "output_tokens" },
}

function envoy_on_response(handle)
  local before = ""
  for chunk in handle:bodyChunks() do
    local text = before .. chunk:getBytes(0, chunk:length())
    local _, last = string.find(text, '^.*[^\\]"usage"%s*:%s*{')
    if last then
      local metadata = handle:streamInfo():dynamicMetadata()
      for counted, names in pairs(NAMES) do
        for _, name in ipairs(names) do
          local count = string.match(text, '"' .. name .. '"%s*:%s*(%d+)', last)
          if count then
            metadata:set("moorage", counted, tonumber(count))
          end
        end
      end
    end
    before = string.sub(text, -KEPT)
  end
end
