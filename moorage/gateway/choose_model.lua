-- Reads the model's name where JSON does not hold it, and refuses what nobody answers for. In front of
-- this stands MODELS: the model by each of its names.
local FARTHEST = 3

local function refuse(handle, status, code, detail)
  local quoted = string.gsub(detail, '[%c"\\]', " ")
  handle:respond(
    { [":status"] = status, ["content-type"] = "application/json" },
    '{"error":{"message":"' .. quoted .. '","type":"invalid_request_error","param":"model","code":"' .. code .. '"}}'
  )
end

local function distance(one, other)
  local row = {}
  for j = 0, #other do
    row[j] = j
  end
  for i = 1, #one do
    local corner = row[0]
    row[0] = i
    for j = 1, #other do
      local change = corner + (one:byte(i) == other:byte(j) and 0 or 1)
      corner = row[j]
      row[j] = math.min(row[j] + 1, row[j - 1] + 1, change)
    end
  end
  return row[#other]
end

local function nearest(name)
  local best, least = nil, FARTHEST + 1
  for other in pairs(MODELS) do
    if math.abs(#other - #name) < least then
      local far = distance(name, other)
      if far < least or (far == least and best and other < best) then
        best, least = other, far
      end
    end
  end
  return best
end

local function in_form(handle)
  local kind = handle:headers():get("content-type") or ""
  if not string.find(string.lower(kind), "multipart/form-data", 1, true) then
    return nil
  end
  local body = handle:body()
  local form = body and body:getBytes(0, body:length()) or ""
  local _, last = string.find(form, 'name="?model"?[^\n]*\r\n\r\n')
  local stop = last and string.find(form, "\r\n", last + 1, true)
  return stop and string.sub(form, last + 1, stop - 1)
end

-- Reading the body ends the life of all other objects, so each is fetched anew after it.
local function dynamic_metadata(handle)
  return handle:streamInfo():dynamicMetadata()
end

local function requested_model(handle)
  local known = dynamic_metadata(handle):get("envoy.lb")
  local name = known and known.model
  if name and name ~= "" then
    return name
  end
  name = in_form(handle)
  if name then
    dynamic_metadata(handle):set("envoy.lb", "model", name)
    handle:clearRouteCache()
  end
  return name
end

local function may_ask(handle, model)
  local caller = dynamic_metadata(handle):get("moorage")
  if not caller or not caller.models then
    return true
  end
  return caller.models[model]
end

function envoy_on_request(handle)
  local path = string.match(handle:headers():get(":path"), "^[^?]*")
  local owner = string.match(path, "^/models/([^/]+)/v1/")
  if handle:headers():get(":method") ~= "POST" or not (owner or string.find(path, "^/v1/")) then
    return
  end
  local name = requested_model(handle)
  if not name then
    return refuse(handle, "400", "missing_model", "Say which model: the request has no field 'model'.")
  end
  local model = MODELS[name]
  if not model then
    local hint = nearest(name)
    local detail = "The model '" .. string.sub(name, 1, 200) .. "' does not exist."
    return refuse(handle, "404", "model_not_found", detail .. (hint and " Did you mean '" .. hint .. "'?" or ""))
  end
  if owner and owner ~= model then
    return refuse(handle, "421", "misdirected_request", "This address serves '" .. owner .. "', not '" .. name .. "'.")
  end
  if not may_ask(handle, model) then
    return refuse(handle, "403", "model_not_allowed", "This API key may not ask '" .. name .. "'.")
  end
end
