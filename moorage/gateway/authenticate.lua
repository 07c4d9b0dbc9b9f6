-- Identifies the caller by the SHA-256 of the API key. Generated lines above define REQUIRES_KEY and
-- KEYS, the callers by the digest of their key.
local bit = require("bit")
local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local ror, shl, shr, wrap, hex = bit.ror, bit.lshift, bit.rshift, bit.tobit, bit.tohex

-- Constants of FIPS 180-4, section 4.2.2.
local K = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
local START = {
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}
local LONGEST = 512

local function padded(text)
  local bits = #text * 8
  local size = string.char(band(shr(bits, 24), 255), band(shr(bits, 16), 255), band(shr(bits, 8), 255), band(bits, 255))
  return text .. "\128" .. string.rep("\0", (55 - #text) % 64) .. "\0\0\0\0" .. size
end

local function schedule(block, at)
  local w = {}
  for i = 0, 15 do
    local a, b, c, d = string.byte(block, at + i * 4, at + i * 4 + 3)
    w[i] = bor(shl(a, 24), shl(b, 16), shl(c, 8), d)
  end
  for i = 16, 63 do
    local x, y = w[i - 15], w[i - 2]
    local first = bxor(ror(x, 7), ror(x, 18), shr(x, 3))
    local second = bxor(ror(y, 17), ror(y, 19), shr(y, 10))
    w[i] = wrap(w[i - 16] + first + w[i - 7] + second)
  end
  return w
end

local function sha256(text)
  local state, message = { unpack(START) }, padded(text)
  for at = 1, #message, 64 do
    local w = schedule(message, at)
    local a, b, c, d, e, f, g, h = unpack(state)
    for i = 0, 63 do
      local mixed = bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(band(e, f), band(bnot(e), g))
      local first = wrap(h + mixed + K[i + 1] + w[i])
      local majority = bxor(band(a, b), band(a, c), band(b, c))
      local second = wrap(bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + majority)
      h, g, f, e, d, c, b, a = g, f, e, wrap(d + first), c, b, a, wrap(first + second)
    end
    for i, value in ipairs({ a, b, c, d, e, f, g, h }) do
      state[i] = wrap(state[i] + value)
    end
  end
  local words = {}
  for i, value in ipairs(state) do
    words[i] = hex(value)
  end
  return table.concat(words)
end

local function refuse(handle, headers, kind, code, detail)
  headers["content-type"] = "application/json"
  handle:respond(
    headers,
    '{"error":{"message":"' .. detail .. '","type":"' .. kind .. '","param":null,"code":"' .. code .. '"}}'
  )
end

local function refuse_key(handle, detail)
  local headers = { [":status"] = "401", ["www-authenticate"] = "Bearer" }
  return refuse(handle, headers, "invalid_request_error", "invalid_api_key", detail)
end

local function refuse_spent(handle, seconds)
  local headers = { [":status"] = "429", ["retry-after"] = tostring(math.ceil(seconds)) }
  local detail = "The API key has used up its tokens of this day (UTC)."
  return refuse(handle, headers, "insufficient_quota", "token_limit", detail)
end

local function presented(headers)
  local given = headers:get("authorization")
  if given then
    return string.match(given, "^[Bb]earer%s+(%S+)%s*$")
  end
  return headers:get("api-key") or headers:get("x-api-key")
end

local function caller_of(key, now)
  local caller = key and #key <= LONGEST and KEYS[sha256(key)]
  if caller and not (caller.expires and caller.expires * 1000 <= now) then
    return caller
  end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local path = headers:get(":path")
  local key = presented(headers)
  -- Engines get the gateway's own key, if any, and never a caller's.
  headers:remove("authorization")
  headers:remove("api-key")
  headers:remove("x-api-key")
  headers:remove("x-moorage-model")
  headers:remove("x-moorage-prefix")
  if path == "/health" or path == "/ready" then
    return
  end
  local caller = caller_of(key, handle:timestamp())
  if caller then
    local metadata = handle:streamInfo():dynamicMetadata()
    metadata:set("moorage", "caller", caller.name)
    if caller.models then
      metadata:set("moorage", "models", caller.models)
    end
    local left = caller.spent_until and caller.spent_until - handle:timestamp() / 1000
    if left and left > 0 then
      metadata:set("moorage", "spent", true)
      return refuse_spent(handle, left)
    end
  elseif REQUIRES_KEY then
    local detail = key and "The API key is unknown, revoked or expired." or "Give an API key: Authorization: Bearer KEY."
    return refuse_key(handle, detail)
  end
end
