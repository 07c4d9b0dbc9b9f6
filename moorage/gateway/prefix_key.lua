-- Gives each prompt a key made from its beginning. Prompts that begin alike go to the same replica, which
-- has their beginning in its cache. Only routes of prefix-aware models run this.
local HEADER = "x-moorage-prefix"

-- Bytes of the body to search; bytes of a text that make its key.
local FARTHEST = 256 * 1024
local LONGEST = 1024
-- Shorter instructions in front of the first question do not get a replica of their own.
local LEAST = 256
local PRIME = 4294967291
local USER = '"user"'

-- How often this thread of Envoy saw each instruction lately; both counts are halved at MOST.
local MOST = 512
local HOT = 1 / 8
local seen, total = {}, 0

-- Where the value of a key begins. Quotes inside strings are escaped, so text that callers write in a
-- prompt is never found.
local function value_of(text, key, from)
  local name = '"' .. key .. '"'
  local _, last = string.find(text, name, from, true)
  while last do
    local _, before = string.find(text, "^%s*:%s*", last + 1)
    if before then
      return before + 1
    end
    _, last = string.find(text, name, last + 1, true)
  end
end

local function last_value_of(text, key, from, before)
  local found
  local at = value_of(text, key, from)
  while at and at < before do
    found, at = at, value_of(text, key, at)
  end
  return found
end

local function string_end(text, at)
  at = string.find(text, '["\\]', at + 1)
  while at and string.sub(text, at, at) == "\\" do
    at = string.find(text, '["\\]', at + 2)
  end
  return at
end

local DEEPER = { ["{"] = 1, ["["] = 1, ["}"] = -1, ["]"] = -1 }

-- The value at the beginning of a text; the whole text if the value does not end in it.
local function first_value(text)
  local depth, at = 0, 1
  while at do
    local here = string.sub(text, at, at)
    at = here == '"' and string_end(text, at) or (here ~= '"' and at)
    depth = depth + (DEEPER[here] or 0)
    if not at or depth <= 0 then
      break
    end
    at = string.find(text, '["%[%]{}]', at + 1)
  end
  return string.sub(text, 1, at or #text)
end

-- The content of the user's first message, which all turns of a conversation share; it may precede the
-- role.
local function first_question(text, from)
  local role = value_of(text, "role", from)
  while role and string.sub(text, role, role + #USER - 1) ~= USER do
    role = value_of(text, "role", role)
  end
  if role and string.find(text, "^%s*}", role + #USER) then
    return last_value_of(text, "content", from, role)
  end
  return role and value_of(text, "content", role)
end

local function key_of(text)
  local key = 0
  for at = 1, #text do
    key = (key * 257 + string.byte(text, at)) % PRIME
  end
  return string.format("%08x", key)
end

local function is_hot(key)
  seen[key], total = (seen[key] or 0) + 1, total + 1
  local hot = seen[key] > total * HOT
  if total >= MOST then
    total = 0
    for one, count in pairs(seen) do
      local half = math.floor(count / 2)
      seen[one] = half > 0 and half or nil
      total = total + half
    end
  end
  return hot
end

-- Instructions that many prompts share are soon in all caches: then the question decides, so that all
-- replicas serve them. Prompts with other instructions stay together.
local function prefix_key(text)
  local from = value_of(text, "messages", 1) or value_of(text, "prompt", 1) or value_of(text, "input", 1)
  local question = from and first_question(text, from)
  if question and question - from >= LEAST then
    local instructions = key_of(string.sub(text, from, math.min(question, from + LONGEST) - 1))
    if not is_hot(instructions) then
      return instructions
    end
  end
  local at = question or from
  return at and key_of(first_value(string.sub(text, at, at + LONGEST - 1)))
end

function envoy_on_request(handle)
  if not string.find(handle:headers():get("content-type") or "", "json", 1, true) then
    return
  end
  local body = handle:body()
  local key = body and prefix_key(body:getBytes(0, math.min(body:length(), FARTHEST)))
  if key then
    handle:headers():replace(HEADER, key)
  end
end
