package fakeserver

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Agents returns copies of all agents, of every key, in the order of creation.
func (s *Server) Agents() []Agent {
	defer s.lock().Unlock()
	all := []Agent{}
	for _, a := range s.generation.service.Agents() {
		all = append(all, copyAgent(a))
	}
	return all
}

// Agent returns a copy of the agent with this identifier, whichever key created it, and
// reports whether it exists.
func (s *Server) Agent(agentID string) (copied Agent, found bool) {
	defer s.lock().Unlock()
	if a := s.generation.service.Agent(agentID); a != nil {
		return copyAgent(a), true
	}
	return Agent{}, false
}

// agentLocked finds an agent. It panics for an unknown agent, with a message that names
// method.
func (s *Server) agentLocked(method, agentID string) *service.Agent {
	a := s.generation.service.Agent(agentID)
	if a == nil {
		misuse(method, "no agent has the identifier %s; Agents lists all", quoteName(agentID))
	}
	return a
}

// RemoveAgent deletes an agent: every later call to it is answered 404. An
// unknown agent panics.
func (s *Server) RemoveAgent(agentID string) {
	defer s.lock().Unlock()
	s.generation.service.RemoveAgent(s.agentLocked("RemoveAgent", agentID))
}

// Conversation returns the exchanges with an agent in the order in which they
// were answered: the newest 1,000, or WithCallLimit if that is more. Scripted
// errors are not among them. An unknown agent panics.
func (s *Server) Conversation(agentID string) []Exchange {
	defer s.lock().Unlock()
	return copyExchanges(s.agentLocked("Conversation", agentID).Exchanges)
}

// SetSMS gives an agent's SMS channel a status of interface 3 (disabled,
// needs_compliance, pending, active, needs_setup), as the service does at some time after
// the channel was enabled. Reading the agent then shows phoneNumber; "" shows none. An
// unknown agent or status, and invalid UTF-8, panic.
func (s *Server) SetSMS(agentID, status, phoneNumber string) {
	checkSMSStatus("SetSMS", status)
	checkTexts("SetSMS", phoneNumber)
	now := s.Now()
	defer s.lock().Unlock()
	a := s.agentLocked("SetSMS", agentID)
	sms := service.SMS{Status: status, PhoneNumber: phoneNumber}
	if a.SMS != nil {
		sms.Mode = a.SMS.Mode
	}
	a.SMS, a.UpdatedAt = &sms, now
}

// AddAgent puts an agent of key into the fake, as if a call had created it
// before the test. It spends no limit, and Calls does not show it. Zero fields
// are filled: ID with the next identifier, Status with active, CreatedAt with
// the fake's time, UpdatedAt with CreatedAt, LLM with the documented defaults,
// SMS.Status with the status that SMS.Mode leads to. Key is always the label of
// key. AddAgent returns a copy of the result.
//
// It panics for a key that this fake did not issue, an identifier that is taken or cannot
// be in a path, such as one with a slash, values that interface 2.3 and 3 rule out, invalid
// UTF-8, and a time outside the years 0 to 9999.
func (s *Server) AddAgent(key string, a Agent) Agent {
	stored := s.config.storedAgent(a)
	now := s.Now()
	defer s.lock().Unlock()
	owner := s.keyLocked("AddAgent", key)
	if s.generation.service.Agent(a.ID) != nil {
		misuse("AddAgent", "there is an agent with this ID already")
	}
	return copyAgent(s.generation.service.AddAgent(owner, stored, now))
}

// storedAgent returns the agent as the state keeps it, with times without monotonic
// readings. It panics unless the service would accept a creation with these parameters.
// To check that, it makes the body of such a creation and passes it to package wire, so
// that each bound is stated only once.
func (c *config) storedAgent(a Agent) service.Agent {
	fields, flaw := wire.Parse(c.behavior, spec.CreateAgent, creationOf(a), nil)
	if flaw == nil {
		flaw = c.behavior.CheckMetadata(fields[spec.Metadata])
	}
	switch ofID := spec.AgentIDProblem(a.ID); {
	case flaw != nil:
		misuse("AddAgent", "%s", wire.Reason(flaw))
	case ofID != "":
		misuse("AddAgent", "the ID %s", ofID)
	}
	checkTexts("AddAgent", a.Status, a.SystemPrompt, a.CustomerRef, a.LLM.Model, a.LLM.BaseURL, a.LLM.Label, cmp.Or(a.SMS, &SMS{}).PhoneNumber)
	checkTimes("AddAgent", a.CreatedAt, a.UpdatedAt)
	stored := service.AgentOf(fields)
	stored.ID, stored.Status = a.ID, a.Status
	stored.CreatedAt, stored.UpdatedAt = a.CreatedAt.UTC().Round(0), a.UpdatedAt.UTC().Round(0)
	if a.SMS != nil {
		checkSMSStatus("AddAgent", cmp.Or(a.SMS.Status, spec.SMSDisabled))
		sms := service.SMS(*a.SMS)
		stored.SMS = &sms
	}
	return stored
}

// creationOf returns the body of a creation with the parameters of an agent.
func creationOf(a Agent) []byte {
	a.LLM.Mode, a.LLM.Tier = cmp.Or(a.LLM.Mode, spec.ModeHosted), cmp.Or(a.LLM.Tier, spec.TierFast)
	given := map[string]any{"system_prompt": a.SystemPrompt, "customer_ref": a.CustomerRef, "llm": a.LLM}
	if a.Metadata != nil {
		given["metadata"] = a.Metadata
	}
	if a.SMS != nil && (a.SMS.Mode != "" || a.SMS.Status == "") {
		given["sms"] = map[string]string{"mode": a.SMS.Mode}
	}
	body, err := strictjson.Encode(given)
	if err != nil {
		misuse("AddAgent", "metadata: must be one JSON object")
	}
	return body
}

// checkSMSStatus panics for a status that interface 3 does not list.
func checkSMSStatus(method, status string) {
	if !slices.Contains(spec.SMSStatuses, status) {
		misuse(method, "unknown status; the statuses are %s", strings.Join(spec.SMSStatuses, ", "))
	}
}

// AddExchanges appends exchanges to an agent's conversation, as if they had
// been made before the test. A zero Time becomes the fake's time. An unknown agent, a
// Text over the bound of interface 8.4, invalid UTF-8 and a Time outside the years 0 to 9999
// panic.
func (s *Server) AddExchanges(agentID string, exchanges ...Exchange) {
	for i, e := range exchanges {
		if !spec.MessageText.Fits(e.Text) {
			misuse("AddExchanges", "exchanges[%d].text: at most %d characters", i, spec.MessageText.MaxLen)
		}
		checkTexts("AddExchanges", e.Text, e.UserRef, e.ReplyText, e.TraceID, strings.Join(e.Warnings, "\n"))
		checkTimes("AddExchanges", e.Time)
	}
	now := s.Now()
	defer s.lock().Unlock()
	a := s.agentLocked("AddExchanges", agentID)
	for _, e := range exchanges {
		e.Time = cmp.Or(e.Time, now).UTC().Round(0)
		e.Warnings = slices.Clone(e.Warnings)
		s.generation.service.AddExchange(a, service.Exchange(e))
	}
}

// checkTexts panics for invalid UTF-8, which JSON cannot hold.
func checkTexts(method string, texts ...string) {
	if !utf8.ValidString(strings.Join(texts, "\n")) {
		misuse(method, "every text must be valid UTF-8")
	}
}

// checkTimes panics for a year that JSON cannot hold. The fake could not write a later
// answer or state that has such a time.
func checkTimes(method string, times ...time.Time) {
	for _, t := range times {
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			misuse(method, "a time must be in the years 0 to 9999, in UTC")
		}
	}
}

// BYOK is the BYOK configuration that is stored for an API key: the members of
// interface 2.4, and the label, which no answer returns. The provider key cannot
// be read.
type BYOK struct {
	Provider    string    `json:"provider"`           // openai_compat, openai or anthropic
	BaseURL     string    `json:"base_url,omitempty"` // "" when not given
	Model       string    `json:"model,omitempty"`    // "" when not given
	Label       string    `json:"label,omitempty"`    // "" when not given
	Fingerprint string    `json:"fingerprint"`        // depends on the provider key and does not reveal it
	UpdatedAt   time.Time `json:"updated_at"`
}

// SetBYOKAvailable makes the BYOK store available or not, for all keys. While the store
// is not available, PUT /v1/byok and warm-up in byok mode answer 503 (interface 4.2,
// 4.4). Agent creation with llm.api_key then answers 400, since the interface lists no
// 503 for it. Agents that use a stored key still reply. A new fake has the store
// available.
func (s *Server) SetBYOKAvailable(available bool) {
	defer s.lock().Unlock()
	s.generation.service.BYOKDown = !available
}

// BYOK returns the BYOK configuration of key, and whether one is set. A key
// that this fake did not issue panics.
func (s *Server) BYOK(key string) (c BYOK, set bool) {
	defer s.lock().Unlock()
	if stored := s.keyLocked("BYOK", key).BYOK; stored != nil {
		return BYOK(*stored), true
	}
	return BYOK{}, false
}

// StoreBYOK stores a provider key and its configuration for key, as if PUT
// /v1/byok had been called before the test. It spends no limit, and Calls does
// not show it. It also works after SetBYOKAvailable(false), and for keys that
// are not dashboard-issued. The provider key is encrypted at once. StoreBYOK sets
// Fingerprint, and UpdatedAt to the fake's time, and returns the result.
//
// A key that this fake did not issue, an unknown Provider, an empty provider key and
// invalid UTF-8 panic.
func (s *Server) StoreBYOK(key, providerKey string, c BYOK) BYOK {
	if !spec.BYOKProvider.Allows(c.Provider) || providerKey == "" {
		misuse("StoreBYOK", "a provider key is required, and its Provider: one of %s", spec.BYOKProvider.Values())
	}
	checkTexts("StoreBYOK", providerKey, c.BaseURL, c.Model, c.Label)
	now := s.Now()
	defer s.lock().Unlock()
	k := s.keyLocked("StoreBYOK", key)
	c.UpdatedAt = now
	s.generation.service.StoreBYOK(k, providerKey, service.BYOK(c))
	return BYOK(*k.BYOK)
}

// KeyOptions say what kind of key IssueKey makes. The zero value makes a key
// like the default one: dashboard-issued, on the preview plan.
type KeyOptions struct {
	// Plan is the key's plan; the zero value means PlanPreview.
	Plan Plan
	// NotDashboard makes a key that was not issued through the dashboard:
	// BYOK operations and warm-up in byok mode answer 403 (interface 5).
	NotDashboard bool
}

// Key returns the default API key: dashboard-issued, on the plan of WithPlan or else the
// preview plan. Its text comes from WithKey, or else is amk_fake_000001 in every fake.
func (s *Server) Key() string { return s.config.keyText(1) }

// IssueKey returns a new API key. Each key is an account: it shares agents, BYOK
// configuration and limits with no other key, except for the limits per address.
// An unknown plan panics.
func (s *Server) IssueKey(o KeyOptions) string {
	plan, now := o.Plan.checked("IssueKey"), s.Now()
	defer s.lock().Unlock()
	text := s.config.keyText(len(s.generation.service.Keys()) + 1)
	s.generation.service.Issue(service.DigestOf(text), plan, !o.NotDashboard, now)
	return text
}

// IssueKeyOn is for contract.Abilities and observe.Abilities; tests use IssueKey. It is
// IssueKey without types of this package: it makes a key on one of the plans preview (or ""),
// free, pro and byok, dashboard-issued or not. An unknown plan panics.
func (s *Server) IssueKeyOn(plan string, dashboard bool) string {
	return s.IssueKey(KeyOptions{Plan: Plan(plan), NotDashboard: !dashboard})
}

// keyLocked finds a key. It panics for an unknown key, without the key's text.
func (s *Server) keyLocked(method, key string) *service.Key {
	k := s.generation.service.Key(service.DigestOf(key))
	if k == nil {
		misuse(method, "this fake did not issue that key; Key and IssueKey return the ones it did")
	}
	return k
}

// RevokeKey makes every later call with key answer 401. A key that this fake
// did not issue panics.
func (s *Server) RevokeKey(key string) {
	now := s.Now()
	defer s.lock().Unlock()
	k := s.keyLocked("RevokeKey", key)
	k.Revoked, k.RevokedAt = true, now
}

// ReinstateKey makes a key that was revoked valid again, with its agents, limits
// and BYOK configuration. A key that this fake did not issue panics.
func (s *Server) ReinstateKey(key string) {
	defer s.lock().Unlock()
	k := s.keyLocked("ReinstateKey", key)
	k.Revoked, k.RevokedAt = false, time.Time{}
}

// SetPlan moves key to another plan, with immediate effect: PlanFree makes every later
// call answer 402, the others set the limits of the plan. Calls that were counted stay
// counted. A token bucket (Decisions, windows) is full again at the same time as under
// the old plan. A key that this fake did not issue, and an unknown plan, panic.
func (s *Server) SetPlan(key string, plan Plan) {
	known := plan.checked("SetPlan")
	defer s.lock().Unlock()
	s.keyLocked("SetPlan", key).Plan = known
}

// Exhaust closes one limit for one key, as if its calls were used up: the next
// call with key that spends the limit is answered 429, from whatever address.
// Other keys are not affected.
//
// The limit opens again after one window from now: a minute, an hour or a day, however
// the fake counts calls and whatever the key has called before. Exhaust does not extend
// the time of a limit that it has closed already.
//
// An unknown limit, and a key that this fake did not issue, panic.
func (s *Server) Exhaust(key string, limit Limit) {
	i, now := spec.LimitIndex(spec.LimitKey(limit)), s.Now()
	if i < 0 {
		misuse("Exhaust", "unknown limit; the limits are %s", spec.LimitNames()) // not quoted: the argument may be a key
	}
	defer s.lock().Unlock()
	s.generation.service.Exhaust(s.keyLocked("Exhaust", key), i, now)
}

// LimitState describes one limit of an API key at one moment.
type LimitState struct {
	Key  Limit // one of the Limit constants
	Max  int   // calls that a window allows, by the key's plan or WithLimit
	Used int   // calls that count now
	// Opens is when the limit lets the next call through; the zero time if the limit is open
	// now. A limit that Exhaust closed has an Opens too, even if Used is less than Max.
	Opens time.Time
}

// Limits returns the state of the limits of key, in the order of interface 8.1.
// The limits per address are included only if a FromIP is given; Used then counts
// the calls of every key from that address. Limits spends nothing. A key that
// this fake did not issue, and a second FromIP, panic.
func (s *Server) Limits(key string, from ...FromIP) (states []LimitState) {
	ip, now := netip.Addr{}, s.Now()
	if len(from) > 0 {
		ip = address("Limits", from).Unmap().WithZone("")
	}
	defer s.lock().Unlock()
	for _, l := range s.generation.service.LimitStates(s.keyLocked("Limits", key), ip, now) {
		states = append(states, LimitState{Limit(l.Limit), l.Max, l.Used, l.Opens})
	}
	return states
}
