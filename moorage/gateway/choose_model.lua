-- Reads the model's name from requests whose JSON does not hold it, and refuses unknown models. Generated
-- lines above define MODELS, the model by each of its names, and PATHS, the engines' paths that name a model.
local FARTHEST = 3
-- The longest that RFC 2046 allows.
local LONGEST_BOUNDARY = 70
local LONGEST_HEAD = 4096
local MOST_PARTS = 100

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

local function boundary_of(kind)
  if not string.find(string.lower(kind), "multipart/form-data", 1, true) then
    return nil
  end
  local _, before = string.find(string.lower(kind), "boundary%s*=%s*")
  local boundary = before and string.match(kind, '^"?([^";]+)', before + 1)
  return boundary and #boundary <= LONGEST_BOUNDARY and boundary or nil
end

local function is_model(head)
  return string.find(head, '\n[Cc]ontent%-[Dd]isposition:[^\r\n]*[;%s]name="?model"?[;%s]')
end

-- The field `model` of a form; text inside another field that looks like it, as in a file, does not count.
-- No part is searched beyond its end, or a form of many parts would take minutes.
local function form_field(form, boundary)
  local delimiter = "--" .. boundary
  local at = string.find(string.sub(form, 1, LONGEST_HEAD), delimiter, 1, true)
  for _ = 1, MOST_PARTS do
    local stop = at and string.find(form, "\r\n" .. delimiter, at + #delimiter, true)
    if not stop then
      return nil
    end
    local start = string.sub(form, at, math.min(stop + 1, at + LONGEST_HEAD))
    local head = string.find(start, "\r\n\r\n", 1, true)
    if head and is_model(string.sub(start, 1, head + 1)) then
      return string.sub(form, at + head + 3, stop - 1)
    end
    at = stop + 2
  end
end

local function in_form(handle)
  local boundary = boundary_of(handle:headers():get("content-type") or "")
  local body = boundary and handle:body()
  return body and form_field(body:getBytes(0, body:length()), boundary)
end

-- Reading the body invalidates all other objects, so each is fetched again after it.
local function dynamic_metadata(handle)
  return handle:streamInfo():dynamicMetadata()
end

local function requested_model(handle)
  local known = dynamic_metadata(handle):get("envoy.lb")
  local name = known and known.model
  if type(name) == "string" and name ~= "" then
    return name
  end
  name = in_form(handle)
  if name then
    dynamic_metadata(handle):set("envoy.lb", "model", name)
    handle:clearRouteCache()
  end
  return name
end

local function may_ask(handle, name, model)
  local caller = dynamic_metadata(handle):get("moorage")
  if not caller or not caller.models then
    return true
  end
  return caller.models[name] or caller.models[model]
end

function envoy_on_request(handle)
  local path = string.match(handle:headers():get(":path"), "^[^?]*")
  local owner, below = string.match(path, "^/models/([^/]+)(/.*)$")
  below = below or path
  if not (PATHS[below] or string.find(below, "^/v1/")) then
    return
  end
  local posts = handle:headers():get(":method") == "POST"
  local name = requested_model(handle)
  if not name and not posts then
    return
  elseif not name then
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
  if not may_ask(handle, name, model) then
    return refuse(handle, "403", "model_not_allowed", "This API key may not ask '" .. name .. "'.")
  end
end
