// Package service is the Agent Messaging Service as a state machine: a State,
// the time and a Request give an Answer, and the State after it.
//
// It reads like the interface document, whose sections its comments cite: rows
// is section 4 with the rules of each endpoint, authenticate is section 5, spend
// is section 8. What the document leaves open is decided in Behavior. A
// Refusal has the status of the interface, and the types that a state file holds
// have JSON tags. Everything else about HTTP and JSON, the lock and the clock is
// with the caller, which makes one call at a time.
package service

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Limits bound what a State allows and keeps.
type Limits struct {
	Maxima    [spec.LimitCount]int // of calls, in the order of spec.Limits; 0 means the plan's
	Exchanges int                  // kept of each conversation, the newest
}

// State is the memory of the service. It shares nothing with another State but
// what never changes.
type State struct {
	by       *Behavior // never changes
	rate     rate      // of Behavior, without length and max
	limits   Limits
	vault    *vault // nil until a provider key is stored
	keys     []*Key // in the order of issue
	byDigest map[Digest]*Key
	agents   map[string]*Agent
	ordered  []*Agent               // in the order of creation
	numbers  int                    // the number of the last agent
	ips      map[netip.Addr]*Counts // of client addresses
	BYOKDown bool                   // the store of provider keys is not available
}

// New returns the state of a service without keys.
func New(by *Behavior, limits Limits) *State {
	return &State{
		by: by, limits: limits, rate: rate{kind: by.Windows, bucket: IsBucket(by.Windows), burst: burstOf(by.Windows)},
		byDigest: map[Digest]*Key{}, agents: map[string]*Agent{}, ips: map[netip.Addr]*Counts{},
	}
}

// Request is a call as the service sees it.
type Request struct {
	Endpoint  *spec.Endpoint // nil where no endpoint has the path and method: Unrouted says why
	Unrouted  *Refusal       // 404 or 405
	Malformed *Refusal       // 400: what is wrong with the body
	Token     Digest
	HasToken  bool
	IP        netip.Addr
	AgentID   string
	Fields    Fields
	TraceID   string
}

// Fields are the values of a body, by field. A free object is compact JSON.
type Fields map[*spec.Field]string

// Answer is what the service decided: one of the three is set.
type Answer struct {
	Refusal *Refusal
	Reply   any   // OK, Warmed, Config, Created, Read, Channel, Message or StatusValues
	Turn    *Turn // of a message, whose reply Finish brings
	// TwoClocks is set where a key was used under two clocks, more than a day apart:
	// its limits then start afresh.
	TwoClocks bool
}

// The replies.
type (
	OK      struct{}
	Warmed  struct{ Mode string }
	Config  struct{ BYOK *BYOK } // nil when none is set
	Created struct {
		ID, Status string
		SMS        *SMS
	}
	Read    struct{ Agent Agent }
	Channel struct{ Status string }
	Message struct {
		Text     string
		Warnings []string
	}
)

// row is an endpoint with its rules. The body that it takes, the statuses that it
// lists and what it spends are in its row of package spec.
type row struct {
	endpoint *spec.Endpoint
	mode     *spec.Field // asks for byok mode, in the body or when the agent was created; nil: none does
	byok     *spec.Field // needs the store of provider keys: with a key, or in byok mode; nil: none does
	checks   []check     // in this order, after 404, 405, 401 and 402
	act      func(*call) Answer
}

var rows = []row{
	{spec.Status, nil, nil, nil, (*call).status},
	{spec.WarmUp, spec.WarmUpMode, spec.WarmUpMode, []check{wellFormed, dashboard, storeUp, byokStored}, (*call).warmUp},
	{spec.GetBYOK, nil, nil, []check{dashboard}, (*call).getBYOK},
	{spec.SetBYOK, nil, spec.BYOKAPIKey, []check{dashboard, wellFormed, storeUp}, (*call).setBYOK},
	{spec.ClearBYOK, nil, nil, []check{dashboard, somethingStored}, (*call).clearBYOK},
	{spec.CreateAgent, spec.LLMMode, spec.LLMAPIKey, []check{wellFormed, creationFits, storeUp, byokStored}, (*call).createAgent},
	{spec.GetAgent, nil, nil, []check{agentFound}, (*call).getAgent},
	{spec.SendMessage, spec.LLMMode, nil, []check{wellFormed, agentFound, byokStored}, (*call).sendMessage},
	{spec.EnableSMS, nil, nil, []check{wellFormed, agentFound}, (*call).enableSMS},
}

// call is a request at a moment, with what was found out about it.
type call struct {
	state *State
	req   *Request
	now   time.Time
	row   *row   // of the endpoint, after authenticate
	key   *Key   // likewise
	agent *Agent // after agentFound
}

// Do decides and carries out a call: it looks at the key and the plan, makes the
// checks of the endpoint, spends the limits, and acts.
func (s *State) Do(now time.Time, req *Request) Answer {
	c := &call{state: s, req: req, now: now}
	if refusal := c.authenticate(); refusal != nil {
		invalid := refusal.Kind == NoToken || refusal.Kind == UnknownKey || refusal.Kind == RevokedKey
		if invalid && s.by.spendsDespite(refusal) {
			s.takeRequest(req.IP, now)
		}
		return Answer{Refusal: refusal}
	}
	c.row = &rows[slices.IndexFunc(rows, func(r row) bool { return r.endpoint == req.Endpoint })]
	var flaw *Refusal
	for _, check := range c.row.checks {
		if flaw = check(c); flaw != nil {
			break
		}
	}
	refusal, twoClocks := c.spend(flaw)
	if refusal != nil {
		return Answer{Refusal: refusal, TwoClocks: twoClocks}
	}
	answer := c.row.act(c)
	answer.TwoClocks = twoClocks
	return answer
}

// check is a rule of an endpoint. It returns nil where the call keeps it, or it
// does not apply.
type check func(*call) *Refusal

// status is interface 4.1.
func (c *call) status() Answer { return Answer{Reply: c.state.by.Status} }

// wellFormed is the 400 for a body that breaks section 2 or 8.4.
func wellFormed(c *call) *Refusal {
	if c.req.Malformed != nil && c.req.AgentID != "" && !c.state.by.BodyBeforeAgent {
		if unknown := agentFound(c); unknown != nil {
			return unknown
		}
	}
	return c.req.Malformed
}

// dashboard is the 403 of section 5.3. A warm-up needs no permission in hosted mode.
func dashboard(c *call) *Refusal {
	switch {
	case c.key.Dashboard, c.row.mode != nil && !c.wantsBYOK():
		return nil
	case c.req.Malformed != nil && !c.state.by.PermissionBeforeBody:
		return c.req.Malformed
	}
	r := Refuse(NotDashboard)
	r.Key = c.key.Label
	return r
}

// wantsBYOK reports whether the body asks for byok mode.
func (c *call) wantsBYOK() bool { return c.req.Fields[c.row.mode] == spec.ModeBYOK }

// storeUp is the 503 of 4.2 and 4.4. For a creation with llm.api_key, 4.6 lists no
// 503. Behavior says whether a missing configuration is noticed first.
func storeUp(c *call) *Refusal {
	_, needed := c.req.Fields[c.row.byok]
	if c.row.byok == c.row.mode {
		needed = c.wantsBYOK()
	}
	switch {
	case !c.state.BYOKDown || !needed:
		return nil
	case !c.state.by.StoreDownFirst && byokStored(c) != nil:
		return nil // the next check refuses it
	}
	return c.about(BYOKUnavailable, c.row.byok)
}

// byokStored is the 409 of 4.2, rule 1 of 4.6, and the refusal of a message to a
// byok agent whose configuration was cleared, which section 4.8 does not show.
func byokStored(c *call) *Refusal {
	_, bringsKey := c.req.Fields[spec.LLMAPIKey]
	key, needed := c.key, c.wantsBYOK() && !bringsKey
	if c.agent != nil {
		key = c.state.owner(c.agent)
		needed = c.agent.LLM.Mode == spec.ModeBYOK && !c.agent.OwnKey && c.state.by.BYOKCleared != accepted
	}
	if !needed || key.BYOK != nil {
		return nil
	}
	r := c.about(BYOKNotConfigured, c.row.mode)
	r.Since = key.Cleared
	if c.agent != nil && c.state.by.BYOKCleared == kinds[NoSuchAgent].status {
		r.answerAs(NoSuchAgent)
	}
	return r
}

func (s *State) owner(a *Agent) *Key {
	i := slices.IndexFunc(s.keys, func(k *Key) bool { return k.Label == a.Owner })
	return s.keys[i]
}

// somethingStored is a decision: clearing BYOK where none is set.
func somethingStored(c *call) *Refusal {
	if c.key.BYOK != nil || c.state.by.ClearNothing == accepted {
		return nil
	}
	r := Refuse(NothingStored)
	r.Key = c.key.Label
	return r
}

// creationFits makes the checks of section 2.3 that are about more than one field's
// own text: llm.api_key needs llm.provider, and metadata has a cap.
func creationFits(c *call) *Refusal {
	_, hasKey := c.req.Fields[spec.LLMAPIKey]
	_, hasProvider := c.req.Fields[spec.LLMProvider]
	if hasKey && !hasProvider {
		return BadField(spec.LLMProvider.Path, "is required when llm.api_key is given")
	}
	if metadata, given := c.req.Fields[spec.Metadata]; given {
		return c.state.by.CheckMetadata(metadata)
	}
	return nil
}

// CheckMetadata is the 400 for metadata above the cap, whose value section 2.3 does
// not show.
func (b *Behavior) CheckMetadata(metadata string) *Refusal {
	most, length := b.MetadataCap, b.Length(metadata)
	if length <= most {
		return nil
	}
	r := BadField(spec.Metadata.Path, fmt.Sprintf("at most %d characters of compact JSON", most))
	r.Length, r.Max = length, most
	return r
}

// agentFound is the 404 for an agent. A key that did not create the agent does
// not find it, unless Behavior says otherwise.
func agentFound(c *call) *Refusal {
	a := c.state.agents[c.req.AgentID]
	if a != nil && (a.Owner == c.key.Label || c.state.by.AgentOfAnotherKey == accepted) {
		c.agent = a
		return nil
	}
	r := Refuse(NoSuchAgent)
	if r.Key = c.key.Label; a != nil {
		r.Owner = a.Owner
	}
	return r
}

// countsOf returns the windows of a client address. Bubbles and the outside may
// share an address, but not a key: another clock resets an address in silence.
func (s *State) countsOf(ip netip.Addr, now time.Time) *Counts {
	if c := s.ips[ip]; c == nil || c.isAhead(now) {
		s.ips[ip] = new(Counts)
	}
	return s.ips[ip]
}

// Saved is a state as a file holds it.
type Saved struct {
	Numbers   int            `json:"agents"` // the number of the last agent
	BYOKDown  bool           `json:"byok_unavailable"`
	Keys      []*Key         `json:"keys"`
	Addresses []SavedAddress `json:"addresses"`
	Agents    []*Agent       `json:"agent_list"`
}

// SavedAddress is a client address and what was counted for it.
type SavedAddress struct {
	Address netip.Addr `json:"address"`
	Counts  *Counts    `json:"counts"`
}

// Save copies the state, as it is now.
func (s *State) Save() Saved {
	saved := Saved{Numbers: s.numbers, BYOKDown: s.BYOKDown}
	for _, k := range s.keys {
		copied := *k
		copied.Counts = k.Counts.clone()
		saved.Keys = append(saved.Keys, &copied)
	}
	for _, a := range s.ordered {
		copied := *a
		copied.Exchanges = slices.Clip(a.Exchanges) // an append to one does not reach the other
		saved.Agents = append(saved.Agents, &copied)
	}
	for _, ip := range slices.SortedFunc(maps.Keys(s.ips), netip.Addr.Compare) {
		saved.Addresses = append(saved.Addresses, SavedAddress{ip, s.ips[ip].clone()})
	}
	return saved
}

// Load makes the state that was saved. digest gives the n-th key its digest, from 1.
func (s *State) Load(saved Saved, digest func(n int) Digest) *State {
	c := New(s.by, s.limits)
	c.numbers, c.BYOKDown = saved.Numbers, saved.BYOKDown
	for i, k := range saved.Keys {
		c.addKey(digest(i+1), k)
	}
	for _, a := range saved.Addresses {
		c.ips[a.Address] = a.Counts
	}
	for _, a := range saved.Agents {
		c.agents[a.ID] = a
		c.ordered = append(c.ordered, a)
	}
	return c
}
