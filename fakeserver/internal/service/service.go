// Package service is the Agent Messaging Service as a state machine: a State, the time
// and a Request give a Result, and the State after it.
//
// It reads like the interface document, whose sections its comments cite. A call goes
// through State.Do, from the top down:
//
//   - endpointTable is section 4: the checks of each endpoint, and the function that carries it out.
//   - authenticate is section 5: 401 and 402, and an unknown path or method.
//   - refusedByLimit and spend are section 8: they refuse the call with 429, or count it.
//   - The function of the endpoint changes the State and returns what the reply says.
//
// The files: service.go carries out calls, state.go holds the State, limits.go counts
// calls, refusal.go lists the reasons for a refusal, and behavior.go has the decisions
// that the document leaves open.
//
// A Refusal has an HTTP status. The types of state files and decision files have JSON tags. The
// caller does everything else about HTTP and JSON. It also holds the lock, reads the clock, and
// makes one call at a time. A test fails if this package imports the packages for these
// tasks.
package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Request is a call as the service sees it. Package wire has read its bytes and made the
// checks that need no State. If a check failed, Unrouted or Malformed has the refusal,
// and Do decides whether another refusal comes first.
type Request struct {
	Endpoint  *spec.Endpoint // nil if no endpoint has the path and method; Unrouted says why
	Unrouted  *Refusal       // 404 or 405
	Malformed *Refusal       // 400: what is wrong with the body
	Token     Digest         // of the bearer token; the zero Digest without one
	IP        netip.Addr
	AgentID   string
	Fields    Fields
	TraceID   string
}

// Fields are the values of a body, by field. The value of a free object is compact JSON.
// A field that is missing from the body, or is an accepted null, is not in the map.
type Fields map[*spec.Field]string

// Result is the service's decision: a Refusal, or the result of the endpoint. Package
// wire turns it into JSON. Message.Agent is the stored agent, which later calls change,
// so the caller must read it under the lock. Nothing else in a Result changes later.
type Result struct {
	Refusal *Refusal     // nil if the call succeeded; then the fields below have the result
	Status  StatusValues // 4.1
	Mode    string       // 4.2: the mode in which the gateway is warm
	BYOK    *BYOK        // 4.3 and 4.4; nil when none is set
	Agent   Agent        // 4.6, 4.7 and 4.9: a copy as of this call
	Message *Message     // 4.8: the caller adds the reply
	// TwoClocks is set if a key was used under two clocks: its last call has a time more
	// than a day after this call. The limits of the key then start from zero.
	TwoClocks bool
}

// endpointRules has the parts of an endpoint that only the service needs. Package spec has
// the other parts, which the client reads too.
type endpointRules struct {
	// act carries out a call that no check and no limit has refused.
	act func(*call) Result
	// checks are made in this order, after 404, 405, 401 and 402. The refusal of the first
	// check that fails is the flaw of the call: see State.Do.
	checks []check
}

// endpointTable returns interface 4 as a table. Behavior decides the orders for which it has a
// field, and the interface or this table all others. Paths, statuses and what a call spends are in the rows
// of package spec. CreateAgent spends a BYOK set too if it has llm.api_key.
func endpointTable(b *Behavior) map[*spec.Endpoint]endpointRules {
	agent := ordered(b.BodyBeforeAgent, wellFormed, findAgent)
	permission := ordered(b.PermissionBeforeBody, fromDashboard, wellFormed)
	byok := ordered(b.StoreDownFirst, storeAvailable, byokStored)
	return map[*spec.Endpoint]endpointRules{
		spec.Status:      {act: (*call).status},
		spec.WarmUp:      {act: (*call).warmUp, checks: append([]check{wellFormed, fromDashboard}, byok...)},
		spec.GetBYOK:     {act: (*call).getBYOK, checks: []check{fromDashboard}},
		spec.SetBYOK:     {act: (*call).setBYOK, checks: append(permission, storeAvailable)},
		spec.ClearBYOK:   {act: (*call).clearBYOK, checks: []check{fromDashboard, somethingToClear}},
		spec.CreateAgent: {act: (*call).createAgent, checks: append([]check{wellFormed, creationFits}, byok...)},
		spec.GetAgent:    {act: (*call).getAgent, checks: []check{findAgent}},
		spec.SendMessage: {act: (*call).sendMessage, checks: append(agent, ownersBYOKStored)},
		spec.EnableSMS:   {act: (*call).enableSMS, checks: agent},
	}
}

// ordered returns two checks in this order, or in reverse.
func ordered(inThisOrder bool, checks ...check) []check {
	if !inThisOrder {
		slices.Reverse(checks)
	}
	return checks
}

// call is a request, the time at which it came, and the findings of Do so far. The fields
// from key on are empty until the step that their comment names.
type call struct {
	state     *State
	req       *Request
	now       time.Time
	key       *Key   // after authenticate
	agent     *Agent // after findAgent
	ofAddress *Usage // after openUsages
}

// Do decides and carries out a call: it checks the key and the plan, makes the checks of
// the endpoint, spends the limits, and acts. A call that could be refused for several reasons
// gets the first in this order, from which a field of Behavior may depart:
//
//	404, 405  no endpoint has the path or method (PathBeforeKey)
//	401, 402  the key and its plan (interface 5)
//	429       a limit on requests (LimitBeforeBody, LimitBeforePermission)
//	400, 403  the body and the permission; 403 first at PUT /v1/byok (PermissionBeforeBody)
//	404       the agent (BodyBeforeAgent)
//	503, 409  BYOK (StoreDownFirst)
//	429       a limit on operations (BodyBeforeOperation)
//
// The flaw of a call is the first refusal that its checks found. A limit may still refuse the call
// before it; roleOf decides that for each limit. For example, a wrong body while the
// minute is spent is answered 429 by default, and 400 without LimitBeforeBody. A call that
// authenticate refuses spends no limit of a key, whatever Behavior says: without a valid key there
// is none to spend, and 402, 404 and 405 come before the limits.
func (s *State) Do(now time.Time, req *Request) Result {
	c := &call{state: s, req: req, now: now}
	if refusal := c.authenticate(); refusal != nil {
		c.countKeyless(refusal)
		return Result{Refusal: refusal}
	}
	if req.IP.IsValid() {
		c.key.Address = req.IP.String() // for the control interface
	}
	var flaw *Refusal
	for _, check := range s.endpoints[req.Endpoint].checks {
		if flaw = check(c); flaw != nil {
			break
		}
	}
	var roles limitRoles
	for i := range spec.Limits {
		roles[i] = c.roleOf(&spec.Limits[i], flaw)
	}
	twoClocks := false
	if roles != (limitRoles{}) { // a limit looks at the call
		twoClocks = c.openUsages()
	}
	result := Result{Refusal: c.refusedByLimit(roles)}
	if result.Refusal == nil {
		c.spend(roles)
		result.Refusal = flaw
	}
	if result.Refusal == nil {
		result = s.endpoints[req.Endpoint].act(c)
	}
	result.TwoClocks = twoClocks
	return result
}

// countKeyless counts a call that is answered 401, if Behavior says so. Only the limit
// ip_minute can count it. No limit refuses such a call, because the interface does not say that
// 429 may come before 401.
func (c *call) countKeyless(refusal *Refusal) {
	if refusal.Status != Kinds[UnknownKey].Status || !c.state.behavior.spendsDespite(refusal) {
		return
	}
	// A token bucket needs the maximum of a plan.
	c.state.limit(spec.LimitIndex(fakenames.IPMinute), spec.PreviewPlan, new(Usage), c.addressUsage()).count(c.now)
}

// addressUsage returns the Usage of the caller's address. It stores a new one if there is none, or
// if it comes from another clock.
func (c *call) addressUsage() *Usage {
	usage := usageIfSameClock(c.state.ips[c.req.IP], c.now, longestAddressWindow)
	c.state.ips[c.req.IP] = usage
	return usage
}

// authenticate makes the checks of interface 5, which answer 401 and 402. It also refuses
// a path or method that no endpoint has, since Behavior decides whether this check comes
// before the key.
func (c *call) authenticate() *Refusal {
	c.key = c.state.byDigest[c.req.Token]
	switch {
	case c.req.Unrouted != nil && (c.key != nil && !c.key.Revoked || c.state.behavior.PathBeforeKey):
		return c.req.Unrouted
	case c.req.Token == Digest{}:
		return Refuse(NoToken) // 5.4
	case c.key == nil:
		return Refuse(UnknownKey) // 5.4
	case c.key.Revoked:
		r := c.refuse(RevokedKey)
		r.Since = c.key.RevokedAt
		return r
	case !spec.Plans[spec.PlanIndex(c.key.Plan)].Active:
		return c.refuse(PaymentRequired) // 5.4
	}
	return nil
}

// check is one check of an endpoint. It returns a refusal; nil if the call passes or the
// check does not apply.
type check func(*call) *Refusal

// wellFormed returns the 400 for a body that breaks section 2 or 8.4.
func wellFormed(c *call) *Refusal { return c.req.Malformed }

// fromDashboard returns the 403 of section 5.3. A warm-up needs no permission in hosted
// mode.
func fromDashboard(c *call) *Refusal {
	if c.key.Dashboard || c.req.Endpoint == spec.WarmUp && c.byokMember() == nil {
		return nil
	}
	return c.refuse(NotDashboard)
}

// byokMember returns the member with which the call uses BYOK: a provider key, or else a
// mode that is byok; nil if the call does not use BYOK.
func (c *call) byokMember() *spec.Field {
	for _, member := range []*spec.Field{spec.BYOKAPIKey, spec.LLMAPIKey, spec.WarmUpMode, spec.LLMMode} {
		if value, has := c.req.Fields[member]; has && (member.Enum == nil || value == spec.ModeBYOK) {
			return member
		}
	}
	return nil
}

// storeAvailable returns the 503 of 4.2 and 4.4. For a creation with llm.api_key, 4.6
// lists no 503. A creation that uses the stored key succeeds even if the store is down.
func storeAvailable(c *call) *Refusal {
	member := c.byokMember()
	if !c.state.BYOKDown || member == nil || member == spec.LLMMode {
		return nil
	}
	r := c.refuse(BYOKUnavailable)
	r.Field = member.Path
	return r
}

// byokStored refuses a call in byok mode if no provider key is stored: with the 409 of 4.2,
// or by rule 1 of 4.6. A creation with llm.api_key needs no stored provider key.
func byokStored(c *call) *Refusal {
	member := c.byokMember()
	if c.key.BYOK != nil || member != spec.WarmUpMode && member != spec.LLMMode {
		return nil
	}
	r := c.refuse(BYOKNotConfigured)
	r.Field, r.Since = member.Path, c.key.Cleared
	return r
}

// ownersBYOKStored refuses a message to a byok agent whose provider key was cleared, which
// section 4.8 does not show. The key of the agent's owner counts, also when another key calls.
func ownersBYOKStored(c *call) *Refusal {
	owner, _ := c.state.KeyLabeled(c.agent.Owner) // always found, because keys are revoked and never removed
	if owner.BYOK != nil || c.agent.LLM.Mode != spec.ModeBYOK || c.agent.OwnKey || c.state.behavior.BYOKCleared == carriedOut {
		return nil
	}
	r := c.refuse(BYOKNotConfigured)
	r.Field, r.Since = spec.LLMMode.Path, owner.Cleared
	return r
}

// refuse returns a refusal of a call whose key is known.
func (c *call) refuse(kind Kind) *Refusal {
	r := Refuse(kind)
	r.Key, r.Status = c.key.Label, c.state.behavior.statusOf(kind, c.req.Endpoint)
	return r
}

// somethingToClear refuses to clear BYOK if none is set and Behavior refuses that.
func somethingToClear(c *call) *Refusal {
	if c.key.BYOK != nil || c.state.behavior.ClearNothing == carriedOut {
		return nil
	}
	return c.refuse(NothingStored)
}

// creationFits makes the checks of section 2.3 that package wire cannot make for a single
// field: llm.api_key needs llm.provider, and metadata has a cap.
func creationFits(c *call) *Refusal {
	_, hasKey := c.req.Fields[spec.LLMAPIKey]
	_, hasProvider := c.req.Fields[spec.LLMProvider]
	if hasKey && !hasProvider {
		return BadField(spec.LLMProvider.Path, "is required when llm.api_key is given")
	}
	return c.state.behavior.CheckMetadata(c.req.Fields[spec.Metadata])
}

// CheckMetadata returns the 400 for metadata above the cap. Section 2.3 does not show the
// value of the cap.
func (b *Behavior) CheckMetadata(metadata string) *Refusal {
	maxLength, length := b.MetadataCap, b.Length(metadata)
	if length <= maxLength {
		return nil
	}
	r := BadField(spec.Metadata.Path, fmt.Sprintf("at most %d characters of compact JSON", maxLength))
	r.Length, r.Max = length, maxLength
	return r
}

// findAgent sets the agent of the call, or returns the 404. A key that did not create the agent
// does not find it, unless Behavior says otherwise.
func findAgent(c *call) *Refusal {
	a := c.state.agents[c.req.AgentID]
	if a != nil && (a.Owner == c.key.Label || c.state.behavior.AgentOfAnotherKey == carriedOut) {
		c.agent = a
		return nil
	}
	r := c.refuse(NoSuchAgent)
	if a != nil {
		r.Owner = a.Owner
	}
	return r
}

// role says what one limit does with a call: whether it may refuse the call, and whether it
// counts it.
type role struct{ mayRefuse, counts bool }

// roleOf returns the role of a limit for the call. Without a flaw, each limit that the
// endpoint's row in spec names may refuse the call and counts it. By the fake's own decisions,
// only the limits on requests count a call with a flaw.
func (c *call) roleOf(l *spec.Limit, flaw *Refusal) role {
	behavior, e, succeeds := c.state.behavior, c.req.Endpoint, flaw == nil
	badBody := flaw != nil && flaw.Status == Kinds[BadRequest].Status
	_, setsBYOK := c.req.Fields[spec.LLMAPIKey]
	switch {
	// Section 4 lists no 429 for three endpoints: GET /v1/status, and reading and clearing
	// BYOK. The member status of the decision refused_requests_spend covers all three.
	case l.Counts == spec.Requests && e.Spends == nil:
		return role{counts: behavior.RequestsSpend[callsWithout429]}
	// For every other call, its flaw decides whether it counts as a request.
	case l.Counts == spec.Requests:
		return role{mayRefuse: succeeds || behavior.limitComesBefore(flaw), counts: succeeds || behavior.spendsDespite(flaw)}
	// A creation, a warm-up or a BYOK set. Of the flaws, only one that is answered 400 may count,
	// such as a wrong body: without permission or agent there was no operation.
	case e.Counts(l.Counts, setsBYOK):
		return role{mayRefuse: succeeds || badBody && !behavior.BodyBeforeOperation, counts: succeeds || badBody && behavior.OperationsSpend}
	}
	return role{}
}

// limitRoles has the role of each limit for a call, in the order of spec.Limits.
type limitRoles [spec.LimitCount]role

// openUsages finds what the key and the caller's address have spent, and reports whether the key
// was used under two clocks. Then it starts from zero: a synctest bubble starts in the year 2000,
// and a key that was used outside would have to wait 26 years there. An address starts from zero
// without a report, since bubbles and the outside may share an address.
func (c *call) openUsages() (twoClocks bool) {
	usage := usageIfSameClock(c.key.Usage, c.now, longestKeyWindow)
	twoClocks = usage != c.key.Usage
	c.key.Usage, c.ofAddress = usage, c.addressUsage()
	return twoClocks
}

// spend counts a call against the limits that it spends. Do spends nothing for a call that a
// limit refuses.
func (c *call) spend(roles limitRoles) {
	for i, role := range roles {
		if role.counts {
			c.limit(i).count(c.now)
		}
	}
}

// limit returns limit i of spec.Limits as it applies to the call.
func (c *call) limit(i int) limit {
	return c.state.limit(i, c.key.Plan, c.key.Usage, c.ofAddress)
}

// refusedByLimit returns the 429 for an exhausted limit; nil if none is exhausted.
// Behavior decides between several limits: by default the limit that opens last, or else
// the first in the order of interface 8.1. That order also decides between two limits
// that open at the same time. So the limits of an operation are checked even after a limit on
// requests refuses. Retry-After is the wait for the named limit, in whole seconds (interface 7),
// rounded up.
func (c *call) refusedByLimit(roles limitRoles) *Refusal {
	named, latest := -1, c.now
	for i, role := range roles {
		if !role.mayRefuse {
			continue
		}
		if opens := c.limit(i).opens(c.now); opens.After(latest) && (named < 0 || c.state.behavior.NamesTheLastToOpen) {
			named, latest = i, opens
		}
	}
	if named < 0 {
		return nil
	}
	r := c.refuse(RateLimited)
	r.State = c.limit(named).stateAt(c.now)
	r.Limit = r.State.Limit
	r.Wait = int((latest.Sub(c.now) + time.Second - 1) / time.Second)
	if spec.Limits[named].PerIP {
		r.IP = c.req.IP
	}
	if !c.state.behavior.ExactRetryAfter {
		r.Wait = max(1, r.Wait-1)
	}
	return r
}

// status carries out interface 4.1. It reads nothing of the state.
func (c *call) status() Result { return Result{Status: c.state.behavior.Status} }

// warmUp carries out interface 4.2. After that the first message of the key has no cold
// start. Warming up a warm key succeeds too.
func (c *call) warmUp() Result {
	c.key.Warm = true
	return Result{Mode: cmp.Or(c.req.Fields[spec.WarmUpMode], spec.ModeHosted)}
}

// getBYOK carries out interface 4.3. It works while the store is down, because section
// 4.3 lists no 503.
func (c *call) getBYOK() Result { return Result{BYOK: c.key.BYOK} }

// setBYOK carries out interface 4.4. It replaces a stored key. The answer is the same as
// for reading the configuration.
func (c *call) setBYOK() Result {
	c.storeBYOK(spec.BYOKAPIKey, spec.BYOKProvider, spec.BYOKBaseURL, spec.BYOKModel, spec.BYOKLabel)
	return c.getBYOK()
}

// clearBYOK carries out interface 4.5. It succeeds even if nothing is set, unless
// Behavior says otherwise.
func (c *call) clearBYOK() Result {
	if c.key.BYOK != nil {
		c.key.Cleared = c.now
	}
	c.key.BYOK, c.key.sealed = nil, nil
	return Result{}
}

// storeBYOK stores the provider key of a body. PUT /v1/byok and agent creation have
// different names for the fields, so the caller passes the fields.
func (c *call) storeBYOK(apiKey, provider, baseURL, model, label *spec.Field) {
	m := c.req.Fields
	c.state.StoreBYOK(c.key, m[apiKey], BYOK{
		Provider: m[provider], BaseURL: m[baseURL], Model: m[model], Label: m[label],
		UpdatedAt: c.now,
	})
}

// createAgent carries out interface 4.6. By the fake's own decision, llm.api_key is stored for
// the API key, as PUT /v1/byok would do, and every agent of this API key uses it (2.4). By the
// other decision, llm.api_key is for the new agent alone. The fake then does not store it,
// since it calls no provider.
func (c *call) createAgent() Result {
	_, setsKey := c.req.Fields[spec.LLMAPIKey]
	ownKey := setsKey && !c.state.behavior.CreationStoresKey
	if setsKey && !ownKey { // rule 2
		c.storeBYOK(spec.LLMAPIKey, spec.LLMProvider, spec.LLMBaseURL, spec.LLMModel, spec.LLMLabel)
	}
	a := AgentOf(c.req.Fields)
	a.OwnKey = ownKey
	return Result{Agent: *c.state.AddAgent(c.key, a, c.now)}
}

// AgentOf returns an agent with the parameters of a creation (interface 2.3), without
// identifier, times and owner. AddAgent fills these, and the defaults of missing
// parameters.
func AgentOf(f Fields) Agent {
	a := Agent{
		SystemPrompt: f[spec.SystemPrompt], CustomerRef: f[spec.CustomerRef], Metadata: f[spec.Metadata],
		LLM: LLM{
			Mode: f[spec.LLMMode], Tier: f[spec.LLMTier], Model: f[spec.LLMModel],
			Provider: f[spec.LLMProvider], BaseURL: f[spec.LLMBaseURL], Label: f[spec.LLMLabel],
		},
	}
	if mode, given := f[spec.AgentSMSMode]; given {
		a.SMS = &SMS{Mode: mode}
	}
	return a
}

// getAgent carries out interface 4.7.
func (c *call) getAgent() Result { return Result{Agent: *c.agent} }

// enableSMS carries out interface 4.9. It replaces a channel that the agent has already.
func (c *call) enableSMS() Result {
	c.state.openChannel(c.agent, c.req.Fields[spec.SMSChannelMode])
	c.agent.UpdatedAt = c.now
	return Result{Agent: *c.agent}
}

// Message is a message that was accepted and not answered yet. The caller makes the reply
// without its lock, since a script may wait, and passes it to AnswerMessage.
type Message struct {
	Agent    *Agent   // the stored agent, which may change
	Exchange Exchange // at first without the reply
	Cold     bool     // the first message of a key that is not warm: interface 4.2
}

// sendMessage carries out interface 4.8. The message has spent its limits by now, whatever
// the script answers.
func (c *call) sendMessage() Result {
	m := &Message{Agent: c.agent, Cold: !c.key.Warm, Exchange: Exchange{
		Text: c.req.Fields[spec.MessageText], UserRef: c.req.Fields[spec.MessageUserRef],
		Time: c.now, TraceID: c.req.TraceID,
	}}
	c.key.Warm = true
	return Result{Message: m}
}

// AnswerMessage ends a message: it stores the exchange with the reply, or returns the
// refusal that the script asks for.
func (s *State) AnswerMessage(m *Message, r Reply) *Refusal {
	refusal := r.refusal()
	if refusal == nil {
		m.Exchange.ReplyText, m.Exchange.Warnings = r.Text, slices.Clone(r.Warnings)
		s.AddExchange(m.Agent, m.Exchange)
	}
	return refusal
}

// Reply is a script's answer to a message. Status is 0 or 200 for a text; with any other
// Status the message is refused.
type Reply struct {
	Text     string
	Warnings []string
	Status   int
	Code     string
	Reason   string
}

// refusal returns the refusal that the script asks for, if it does. A status that interface
// 4.8 does not list becomes a 500, because a client must not learn to handle an answer that
// the service never sends.
func (r Reply) refusal() *Refusal {
	refusal := &Refusal{Kind: Scripted, Status: r.Status, Code: cmp.Or(r.Code, CodeOf(r.Status)), Broken: r.Reason}
	switch {
	case r.Status == 0, r.Status == carriedOut:
		return nil
	case !spec.SendMessage.Lists(r.Status):
		refusal = Refuse(UnlistedStatus)
		refusal.Broken = fmt.Sprintf("a ReplyFunc may not answer with status %d; a message is answered with 200 or one of %v", r.Status, spec.SendMessage.Errors)
	case r.Status == Kinds[RateLimited].Status:
		refusal.Limit, refusal.Wait = fakenames.KeyMinute, 1
	}
	return refusal
}
