-- One step of the fleet's budget, the twin of the Go package internal/pacing:
-- the same functions under the same names, in the same order, with the same
-- roundings. A test runs both on the same random histories.
--
-- KEYS[1] holds the state but for the logs, KEYS[1+i] the log of limit i: a
-- sorted set of the attempts that it granted, by their times.
-- ARGV: version, kind, ID, its upper half, spends, batch, limit key, retry
-- after; for each limit its key, max and window; the number of grants, and for
-- each its ID, age and spends. For tests, the time may follow.
--
-- Times are microseconds of this server's clock. They have 16 digits, which a
-- Lua number holds exactly but tostring does not print. IDs have 20, which it
-- does not hold: they stay text. Limits count from 1 here, from 0 outside.

local SECOND = 1000000
local MEMBER_LIFE = 60 * SECOND

local GUARD = 400000
local SLACK = 0.97
local CROWD_BURST = 1.5
local LONG_WINDOW = 3600 * SECOND
local RECALL = 60 * SECOND

local AGING = 60 * SECOND
local PATIENCE = 5 * SECOND
local LEASE = SECOND
local FARTHEST = 100 * 365 * 24 * 3600 * SECOND

local FULL_ENOUGH = 0.85
local NEARLY_FULL = 0.98
local BACK_OFF = 0.95
local FOREIGN = 0.8
local CLIMB = 0.1
local NEAR_FAILED = 0.97
local FORGETTING = 10
local SMALL_BURST = 30
local SLOWER = 1.05
local PROBE_LIFE = 60 * SECOND
local MAX_SEEN = 64

local UNKNOWN, SLIDING, FIXED, PACED = 0, 1, 2, 3
local NO_ID = '0'

local state

local function has(set, i) return bit.band(set, bit.lshift(1, i - 1)) ~= 0 end

local function trunc(x) return x - math.fmod(x, 1) end -- as Go's int64(x)

local function exact(n) return string.format('%.0f', n) end

-- The step, from ARGV.

local function read_grants(from)
  local grants = {}
  for n = 1, tonumber(ARGV[from]) do
    local at = from + 3 * (n - 1)
    grants[n] = { id = ARGV[at + 1], age = math.max(0, tonumber(ARGV[at + 2])), spends = tonumber(ARGV[at + 3]) }
  end
  return grants, from + 3 * #grants + 1
end

local function read_step()
  local step = {
    version = ARGV[1], kind = ARGV[2], id = ARGV[3], member = ARGV[4], spends = tonumber(ARGV[5]),
    batch = ARGV[6] == '1', limit_key = ARGV[7], retry_after = math.min(math.max(0, tonumber(ARGV[8])), FARTHEST), limits = {},
  }
  local at = 9
  for i = 1, #KEYS - 1 do
    step.limits[i] = { key = ARGV[at], max = tonumber(ARGV[at + 1]), window = tonumber(ARGV[at + 2]) }
    at = at + 3
  end
  step.grants, at = read_grants(at)
  step.clock = tonumber(ARGV[at])
  return step
end

local function time(step)
  if step.clock then return step.clock end
  local t = redis.call('TIME')
  return t[1] * SECOND + t[2]
end

-- The logs. Every key is written with an expiry.

local function life()
  local longest = 0
  for _, l in ipairs(state.limits) do longest = math.max(longest, l.window) end
  -- What was learned about a window is worth keeping into the next one.
  return exact(math.ceil(2 * longest / 1000) + 3600 * 1000)
end

local length = {} -- of each log, by its limit; counted once a step
local written = {} -- the logs that are, by their keys

local function log_key(l) return KEYS[1 + l.index] end

local function log_at(l, i) -- i counts from 0
  return tonumber(redis.call('ZRANGE', log_key(l), i, i, 'WITHSCORES')[2])
end

local function knows(l, id) return redis.call('ZSCORE', log_key(l), id) end

local function log_add(l, at, id)
  length[l] = length[l] + redis.call('ZADD', log_key(l), exact(at), id)
  written[log_key(l)] = true
end

local function forget_before(l, begin)
  redis.call('ZREMRANGEBYSCORE', log_key(l), '-inf', '(' .. exact(begin))
  length[l] = redis.call('ZCARD', log_key(l))
end

-- limit.go

local function distance(l)
  if l.kind == PACED then return trunc(l.pace * l.window / l.max) + GUARD end
  return trunc(SLACK * l.window / l.level)
end

local function most_burst(max) return math.min(max, math.max(10, math.floor(max / 6))) end

local function new_limit(i, limit, now)
  local most, window = math.max(1, limit.max), math.max(1000, limit.window)
  local burst = most_burst(most)
  local l = {
    index = i, key = limit.key, max = most, window = window,
    cool = 0, level = most, burst = burst, burst_most = burst,
    corrected = now - 2 * window, failed = 0, failed_at = 0, halved_at = 0,
    kind = UNKNOWN, fixed_end = 0, pace = 1, probe = NO_ID, probe_at = 0,
  }
  l.credit, l.credit_at, l.grown = burst * distance(l), now, now
  return l
end

local function long(l) return l.window >= LONG_WINDOW end

-- allowed is how many calls a window may hold.
local function allowed(l) return math.max(1, math.floor(l.level)) end

-- smooth reports whether calls keep a distance.
local function smooth(l) return not long(l) or l.kind == PACED end

-- gap is the least time between two calls that wait for this limit.
local function gap(l) return smooth(l) and distance(l) or 0 end

-- saved is the credit at the time now. While somebody waits it is kept small.
local function saved(l, now, crowded)
  local most = l.burst * distance(l)
  if crowded and l.kind ~= PACED then most = math.min(most, trunc(CROWD_BURST * distance(l))) end
  return math.min(most, l.credit + now - l.credit_at)
end

local function probing(l, now) return l.probe ~= NO_ID and now - l.probe_at < PROBE_LIFE end

-- opens is when the window has room for ahead calls and one more.
local function opens(l, now, ahead)
  local n = allowed(l)
  local rounds, rest = math.floor(ahead / n), ahead % n
  local full = length[l] + rest >= n
  if l.kind == PACED then return now end
  if full and probing(l, now) then return now + SECOND end
  if full and l.kind == FIXED then return l.fixed_end + GUARD + rounds * l.window end
  if full then return log_at(l, length[l] + rest - n) + (rounds + 1) * (l.window + GUARD) end
  return now + rounds * l.window
end

-- earliest_of is when a call may go, for one limit.
local function earliest_of(l, now, ahead, crowded)
  local at = math.max(now, l.cool, opens(l, now, ahead))
  if smooth(l) then
    at = math.max(at, now + (ahead + 1) * distance(l) - saved(l, now, crowded))
  end
  return at
end

local function may_learn(l) return long(l) and l.kind == UNKNOWN end

local function take(l, now, id, crowded, probe)
  l.credit, l.credit_at = saved(l, now, crowded) - distance(l), now
  log_add(l, now, id)
  if probe and may_learn(l) and length[l] > allowed(l) then l.probe, l.probe_at = id, now end
end

-- find reports whether the log holds a call of late.
local function find(l, now, id)
  local at = knows(l, id)
  return at and tonumber(at) >= now - RECALL
end

local function give_back(l, now, id)
  if not find(l, now, id) then return end
  redis.call('ZREM', log_key(l), id)
  l.credit = l.credit + distance(l)
  if l.probe == id then l.probe = NO_ID end
end

-- insert adds a call of the past that is not in the log yet.
local function insert(l, now, at, id)
  if at < now - l.window - GUARD or knows(l, id) then return end
  log_add(l, at, id)
end

-- learn.go

-- may_probe reports whether nothing but the logs of long windows, whose kind is
-- not known, keeps the call: then it may find out.
local function may_probe(now, spends, ahead, crowd)
  for i, l in ipairs(state.limits) do
    if has(spends, i) and earliest_of(l, now, ahead[i], crowd[i] > 0) > now then
      if ahead[i] > 0 or not may_learn(l) or probing(l, now) or l.cool > now then return false end
    end
  end
  return true
end

local function is_probe(step)
  for _, l in ipairs(state.limits) do
    if l.probe == step.id and step.id ~= NO_ID then return true end
  end
  return false
end

-- accepted: the window is not a sliding one, or the call would have been
-- refused. What came before it counts no more.
local function accepted(step)
  for _, l in ipairs(state.limits) do
    if l.probe == step.id and step.id ~= NO_ID then
      l.probe = NO_ID
      forget_before(l, l.probe_at)
    end
  end
end

local function seen_count()
  local n = 0
  for _ in pairs(state.seen) do n = n + 1 end
  return n
end

local function suspects_of(step)
  for i, l in ipairs(state.limits) do
    if step.limit_key ~= '' and l.key == step.limit_key and has(step.spends, i) then return bit.lshift(1, i - 1) end
  end
  local known = state.seen[step.limit_key]
  local both = bit.band(known or step.spends, step.spends)
  if both == 0 or step.limit_key == '' then return step.spends end
  if known or seen_count() < MAX_SEEN then state.seen[step.limit_key] = both end
  return both
end

local function longest(suspects)
  local best
  for i, l in ipairs(state.limits) do
    if has(suspects, i) and (not best or l.window > best.window) then best = l end
  end
  return best
end

-- blame finds the limit that a refusal came from; nil for a call that spent none.
local function blame(step)
  local suspects = suspects_of(step)
  local best, most = nil, 0
  for i, l in ipairs(state.limits) do
    if has(suspects, i) and step.retry_after <= l.window + 2 * SECOND then
      local fill = length[l] / l.level
      if long(l) and fill < NEARLY_FULL then fill = fill - 2 end -- below all short ones
      if not best or fill > most then best, most = l, fill end
    end
  end
  return best or longest(suspects)
end

local function lower(l, now)
  local own = length[l]
  l.failed, l.failed_at = l.level, now
  if own >= FULL_ENOUGH * l.level then
    l.level = BACK_OFF * l.level
  else
    l.failed = math.max(own, FOREIGN * l.level)
    l.level = l.failed
  end
  l.level = math.max(1, l.level)
  l.burst = 1
end

-- correct lowers what the limit allows, once for all refusals that came of the
-- same mistake.
local function correct(l, now, retry_after, old)
  local two = trunc(2 * l.window / l.level)
  if now - l.corrected < two then return end
  if l.burst > 1 and retry_after <= two + SECOND then
    l.burst = math.max(1, math.floor(l.burst / 2))
    l.burst_most, l.halved_at = l.burst, now
  elseif old then
    lower(l, now)
  else
    return -- a young state does not know what was called before it
  end
  l.corrected, l.grown = now, now
end

-- grow raises again what refusals have lowered, a step for each quiet window.
local function grow(l, now)
  if long(l) or l.level >= l.max and l.burst >= l.burst_most and l.halved_at == 0 then return end
  if l.halved_at ~= 0 and now - l.halved_at >= SMALL_BURST * l.window then
    l.halved_at, l.burst_most = 0, most_burst(l.max)
  end
  for _ = 1, FORGETTING do
    if now - l.grown < l.window then return end
    l.grown = l.grown + l.window
    l.burst = math.min(l.burst_most, 2 * l.burst)
    local most = l.max
    if now - l.failed_at < FORGETTING * l.window and l.failed > 0 then
      most = math.min(most, NEAR_FAILED * l.failed)
    end
    l.level = math.max(l.level, math.min(most, l.level + CLIMB * l.max))
  end
end

-- slow_down paces the calls more slowly, once for all that were under way.
local function slow_down(l, now)
  if now - l.corrected >= distance(l) then
    l.pace, l.corrected = math.min(l.pace * SLOWER, l.max), now
  end
  l.credit, l.credit_at = 0, now
end

-- near reports whether two times are the same but for rounding and delays.
local function near(l, a, b) return math.abs(a - b) <= math.floor(l.window / 500) + 2 * SECOND end

-- learn_kind learns from the wait that a long window's refusal asks for.
local function learn_kind(l, now, retry_after)
  local even = math.floor(l.window / l.max)
  if l.kind == PACED and retry_after <= 2 * even then
    slow_down(l, now)
  elseif l.kind == FIXED and near(l, now + retry_after, l.fixed_end) then
    return -- it is the window that is known
  elseif length[l] > 0 and near(l, now + retry_after, log_at(l, 0) + l.window) then
    l.kind = SLIDING
  elseif retry_after <= even + 2 * SECOND then
    l.kind, l.burst = PACED, math.max(1, length[l])
    l.credit, l.credit_at, l.corrected = 0, now, now
  elseif l.kind == FIXED and 2 * length[l] < l.max then
    l.kind = UNKNOWN
  else
    l.kind, l.fixed_end = FIXED, now + retry_after
  end
end

local function refused(now, step)
  for _, l in ipairs(state.limits) do
    if l.probe == step.id then l.probe = NO_ID end
  end
  local l = blame(step)
  if not l then return end
  l.cool = math.max(l.cool, now + step.retry_after)
  if long(l) then
    learn_kind(l, now, step.retry_after)
  else
    correct(l, now, step.retry_after, now - state.epoch > l.window)
  end
end

-- queue.go

local function order(t) return t.batch and t.since + AGING or t.since end

local function drop_tickets(unwanted)
  local kept = {}
  for _, t in ipairs(state.tickets) do
    if not unwanted(t) then kept[#kept + 1] = t end
  end
  state.tickets = kept
end

-- granted reports that the step was granted before: its answer was lost.
local function granted(now, step)
  for i, l in ipairs(state.limits) do
    if has(step.spends, i) then return find(l, now, step.id) end
  end
end

local function ticket_of(id)
  for _, t in ipairs(state.tickets) do
    if t.id == id then return t end
  end
end

-- enqueue gives the step its ticket, and reports whether it had one: then it
-- has been turned away before.
local function enqueue(now, step)
  local mine = ticket_of(step.id)
  if mine then
    mine.batch = step.batch
  else
    state.arrived = state.arrived + 1
    state.tickets[#state.tickets + 1] = {
      id = step.id, spends = step.spends, since = now, arrival = state.arrived, batch = step.batch, expires = now,
    }
  end
  table.sort(state.tickets, function(a, b)
    if order(a) ~= order(b) then return order(a) < order(b) end
    return a.arrival < b.arrival
  end)
  return mine ~= nil
end

-- crowd_of counts for each limit those that were turned away and wait.
local function crowd_of(id, waited)
  local crowd = {}
  for i in ipairs(state.limits) do
    crowd[i] = 0
    for _, t in ipairs(state.tickets) do
      if has(t.spends, i) and (t.id ~= id or waited) then crowd[i] = crowd[i] + 1 end
    end
  end
  return crowd
end

-- earliest is when a call may go that spends the given limits, and the limit
-- that keeps it longest.
local function earliest(now, spends, each)
  local at, binding = now, 1
  for i in ipairs(state.limits) do
    if has(spends, i) and each[i] > at then at, binding = each[i], i end
  end
  return at, binding
end

-- each_earliest is when each limit would let a call go.
local function each_earliest(now, ahead, crowd)
  local each = {}
  for i, l in ipairs(state.limits) do each[i] = earliest_of(l, now, ahead[i], crowd[i] > 0) end
  return each
end

-- ahead_of counts for each limit the tickets that go before the step's, but for
-- those that another limit keeps longer than the step itself has to wait; and
-- when the step could go if there were none.
local function ahead_of(now, step, crowd)
  local ahead, none = {}, {}
  for i in ipairs(state.limits) do ahead[i], none[i] = 0, 0 end
  local each = each_earliest(now, none, crowd)
  local alone = earliest(now, step.spends, each)
  for _, t in ipairs(state.tickets) do
    if t.id == step.id then break end
    if earliest(now, t.spends, each) <= alone then
      for i in ipairs(state.limits) do
        if has(t.spends, i) then ahead[i] = ahead[i] + 1 end
      end
    end
  end
  return ahead, alone
end

local function leave_queue(id) drop_tickets(function(t) return t.id == id end) end

local function grant(now, step, crowd, probe)
  leave_queue(step.id)
  for i, l in ipairs(state.limits) do
    if has(step.spends, i) then take(l, now, step.id, crowd[i] > 0, probe) end
  end
end

local function ask(now, step)
  drop_tickets(function(t) return t.expires < now end)
  if granted(now, step) then return { granted = true, probe = is_probe(step) } end
  local waited = enqueue(now, step)
  local crowd = crowd_of(step.id, waited)
  local ahead, alone = ahead_of(now, step, crowd)
  local at, binding = earliest(now, step.spends, each_earliest(now, ahead, crowd))
  local probe = at > now and may_probe(now, step.spends, ahead, crowd)
  if at <= now or probe then
    grant(now, step, crowd, probe)
    return { granted = true, probe = probe }
  end
  ticket_of(step.id).expires = now + math.min(at - now, PATIENCE) + LEASE
  return {
    alone = math.min(alone - now, FARTHEST),
    wait = math.min(math.max(at - now, 1000), FARTHEST),
    gap = math.min(gap(state.limits[binding]) * math.max(1, crowd[binding]), FARTHEST),
    limit = binding - 1,
  }
end

-- state.go

local function new_state(step, now)
  local s = { version = step.version, epoch = now, last = now, arrived = 0, limits = {}, tickets = {}, members = {}, seen = {} }
  for i, limit in ipairs(step.limits) do s.limits[i] = new_limit(i, limit, now) end
  return s
end

-- load_state starts anew where there is nothing that this version can read. The
-- logs stay: they are right whatever became of the rest.
local function load_state(step, now)
  -- Changes nothing, and fails where Redis takes no writes or is out of memory:
  -- Redis does not look at its memory again after a script's first write, and
  -- the first of a step would be one that frees some.
  redis.call('SETRANGE', KEYS[1], 0, '')
  local blob = redis.call('GET', KEYS[1])
  local readable, s = pcall(cmsgpack.unpack, blob or '')
  if blob and readable and type(s) == 'table' and s.version == step.version then return s end
  return new_state(step, now)
end

local function save_state()
  redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', life())
  for key in pairs(written) do redis.call('PEXPIRE', key, life()) end
end

-- settle brings the limit to the time now.
local function settle(l, now)
  grow(l, now)
  local begin = now - l.window - GUARD
  if l.kind == FIXED then
    while l.fixed_end + GUARD <= now do l.fixed_end = l.fixed_end + l.window end
    begin = l.fixed_end - l.window
  end
  forget_before(l, begin)
end

-- meet notes that a process is there, forgets those that are not, and counts
-- the others.
local function meet(now, member)
  local count = 0
  state.members[member] = now
  for other, seen in pairs(state.members) do
    if seen < now - MEMBER_LIFE then
      state.members[other] = nil
    else
      count = count + 1
    end
  end
  return count
end

local function unused(now, step)
  leave_queue(step.id)
  for i, l in ipairs(state.limits) do
    if has(step.spends, i) then give_back(l, now, step.id) end
  end
end

-- calm takes away the credit for a burst: there may be calls that the state has
-- not been told of yet.
local function calm(l, now)
  l.credit, l.credit_at = math.min(saved(l, now, false), distance(l)), now
end

local function replay(now, grants)
  for _, l in ipairs(state.limits) do calm(l, now) end
  for _, g in ipairs(grants) do
    for i, l in ipairs(state.limits) do
      if has(g.spends, i) then insert(l, now, now - g.age, g.id) end
    end
  end
end

local acts = {
  ask = ask,
  refused = refused,
  accepted = function(_, step) accepted(step) end,
  unused = unused,
  replay = function(now, step) replay(now, step.grants) end,
}

local function flag(is) return is and 1 or 0 end

local step = read_step()
local now = time(step)
state = load_state(step, now)
state.set_back = math.max(state.set_back or 0, state.last - now) -- a clock that is set back goes on from where it was
state.last = math.max(state.last, now + state.set_back)
now = state.last
local fleet = meet(now, step.member)
for _, l in ipairs(state.limits) do settle(l, now) end
local act = acts[step.kind]
local answer = act and act(now, step) or {}
save_state()
return {
  flag(answer.granted), flag(answer.probe), answer.wait or 0, answer.gap or 0, answer.limit or 0, fleet, state.epoch,
  answer.alone or 0,
}
