package redisstore

import "github.com/redis/go-redis/v9"

// A time in the scripts is two numbers, seconds and nanoseconds, and so is the value
// of a key: when the bucket will be full. A value of another form counts as missing.
// One number is not enough: Lua's numbers are float64, and nanoseconds since 1970 need
// more than 53 bits. The difference of two times is one number; ratelimit limits rates
// so that it fits.

// take charges all keys or none.
//
//	KEYS  the buckets; one may occur twice
//	ARGV  for each: interval and window in nanoseconds, cost
//	reply 1 if they were charged or 0, the time in two numbers, and for each key
//	      how far ahead of it the bucket was
var take = redis.NewScript(`
local t = redis.call('TIME')
local s, n = tonumber(t[1]), tonumber(t[2]) * 1000
local reply, before = {1, s, n}, {}
local function put(key, ahead)
  local sum = n + ahead
  redis.call('SET', key, string.format('%d %d', s + math.floor(sum / 1e9), sum % 1e9), 'PX', math.ceil(ahead / 1e6) + 1000)
end
for i, key in ipairs(KEYS) do
  local interval, window, cost = tonumber(ARGV[3*i-2]), tonumber(ARGV[3*i-1]), tonumber(ARGV[3*i])
  local ahead = before[key]
  if not ahead then
    ahead = 0
    local vs, vn = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
    if vs then
      ahead = (tonumber(vs) - s) * 1e9 + tonumber(vn) - n
    end
    ahead = math.max(ahead, 0)
    if ahead > window then
      -- No bucket is emptier than empty; but the clock may have been set back, or the limit made smaller. It is
      -- refilled from now on, also if nothing is charged.
      ahead = window
      put(key, ahead)
    end
  end
  reply[3+i] = ahead
  before[key] = ahead + cost * interval
  if before[key] > window then reply[1] = 0 end
end
if reply[1] == 1 then
  for i, key in ipairs(KEYS) do
    if tonumber(ARGV[3*i]) > 0 then put(key, before[key]) end
  end
end
return reply
`)

// refund gives back charges, less the time since: that much may have come back by
// itself.
//
//	KEYS  the buckets
//	ARGV  for each: when it was charged in two numbers, the charge in nanoseconds
var refund = redis.NewScript(`
local t = redis.call('TIME')
local s, n = tonumber(t[1]), tonumber(t[2]) * 1000
for i, key in ipairs(KEYS) do
  local since = (s - tonumber(ARGV[3*i-2])) * 1e9 + n - tonumber(ARGV[3*i-1])
  local left = tonumber(ARGV[3*i]) - math.max(0, since)
  local vs, vn = string.match(redis.call('GET', key) or '', '^(%d+) (%d+)$')
  if vs and left > 0 then
    local ahead = (tonumber(vs) - s) * 1e9 + tonumber(vn) - n - left
    if ahead > 0 then
      local sum = n + ahead
      redis.call('SET', key, string.format('%d %d', s + math.floor(sum / 1e9), sum % 1e9), 'PX', math.ceil(ahead / 1e6) + 1000)
    else
      redis.call('DEL', key)
    end
  end
end
return 1
`)
