package fakeserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// add completes and stores an agent. sms is where each mode leads.
func (w *world) add(k *apiKey, given Agent, now time.Time, sms map[string]string) *agent {
	a := &agent{Agent: given, owner: k, number: w.nextAgent()}
	a.ID = cmp.Or(a.ID, numbered("agent", a.number))
	a.Key = k.Label
	a.Status = cmp.Or(a.Status, spec.Active)
	a.CreatedAt = cmp.Or(a.CreatedAt, now)
	a.UpdatedAt = cmp.Or(a.UpdatedAt, a.CreatedAt)
	a.LLM.Mode, a.LLM.Tier = cmp.Or(a.LLM.Mode, spec.ModeHosted), cmp.Or(a.LLM.Tier, spec.TierFast)
	if a.SMS != nil && a.SMS.Status == "" {
		phone := a.SMS.PhoneNumber
		a.enable(a.SMS.Mode, sms)
		a.SMS.PhoneNumber = cmp.Or(phone, a.SMS.PhoneNumber)
	}
	w.insert(a)
	return a
}

// nextAgent returns the next number whose identifier is free: AddAgent may have
// taken some. It tries each number once.
func (w *world) nextAgent() int {
	for w.numbers++; w.agents[numbered("agent", w.numbers)] != nil; w.numbers++ {
	}
	return w.numbers
}

func (st *state) insert(a *agent) {
	st.agents[a.ID] = a
	st.ordered = append(st.ordered, a)
}

// AddAgent puts an agent of key into the fake, as if a call had created it
// before the test. It spends no limit and leaves no call. Zero fields are
// filled: ID with the next identifier, Status with active, CreatedAt with the
// fake's time, UpdatedAt with CreatedAt, LLM with the documented defaults,
// SMS.Status with the status that SMS.Mode leads to. Key is always the label of
// key. AddAgent returns a copy of the result.
//
// These panic: a key that this fake did not issue, an identifier that is taken
// or cannot stand in a path, and values that interface 2.3 and 3 rule out.
func (s *Server) AddAgent(key string, a Agent) Agent {
	if flaw := s.config.agentFlaw(a); flaw != "" {
		misuse("AddAgent", "%s", flaw)
	}
	a = a.copied()
	a.Metadata = compacted(a.Metadata)
	a.CreatedAt, a.UpdatedAt = a.CreatedAt.UTC().Round(0), a.UpdatedAt.UTC().Round(0) // no monotonic readings
	now := s.now()
	taken := false
	s.withKey("AddAgent", key, func(k *apiKey) {
		if taken = s.world.agents[a.ID] != nil; !taken {
			a = s.world.add(k, a, now, s.config.smsStatus).copied()
		}
	})
	if taken {
		misuse("AddAgent", "there is an agent with this ID already")
	}
	return a
}

func compacted(metadata json.RawMessage) json.RawMessage {
	if metadata == nil {
		return nil
	}
	var b bytes.Buffer
	_ = json.Compact(&b, metadata) // agentFlaw has accepted it
	return b.Bytes()
}

// agentFlaw says why the service cannot have such an agent; "" if it can. The
// sentence names a field and its bound, and never the value.
func (c *config) agentFlaw(a Agent) string {
	for _, v := range []struct {
		name  string
		field *spec.Field
		value string
	}{
		{"SystemPrompt", spec.SystemPrompt, a.SystemPrompt},
		{"CustomerRef", spec.CustomerRef, a.CustomerRef},
		{"LLM.Mode", spec.LLMMode, a.LLM.Mode},
		{"LLM.Tier", spec.LLMTier, a.LLM.Tier},
		{"LLM.Model", spec.LLMModel, a.LLM.Model},
		{"LLM.Provider", spec.LLMProvider, a.LLM.Provider},
		{"LLM.BaseURL", spec.LLMBaseURL, a.LLM.BaseURL},
		{"LLM.Label", spec.LLMLabel, a.LLM.Label},
	} {
		if flaw := fieldFlaw(v.name, v.field, v.value); flaw != "" {
			return flaw
		}
	}
	if a.ID == "." || a.ID == ".." {
		return "ID: no path can name it"
	}
	return cmp.Or(c.metadataFlaw(a.Metadata), smsFlaw(a.SMS))
}

// fieldFlaw says why no request could have brought a value; "" if one could.
func fieldFlaw(name string, f *spec.Field, value string) string {
	switch {
	case !utf8.ValidString(value):
		return name + ": must be valid UTF-8"
	case !f.Fits(value):
		return fmt.Sprintf("%s: at most %d characters", name, f.MaxLen)
	case value != "" && !f.Allows(value):
		return name + ": must be one of " + f.Values()
	}
	return ""
}

func checkField(method, name string, f *spec.Field, value string) {
	if flaw := fieldFlaw(name, f, value); flaw != "" {
		misuse(method, "%s", flaw)
	}
}

func (c *config) metadataFlaw(metadata json.RawMessage) string {
	if metadata == nil {
		return ""
	}
	sc := strictjson.Scanner{Data: metadata}
	switch {
	case strictjson.Check(metadata) != nil || sc.Peek() != '{':
		return "Metadata: must be one JSON object"
	case sc.Free() != nil:
		return "Metadata: a member is there twice, or a string holds half a surrogate pair"
	case c.length(string(compacted(metadata))) > c.metadataCap:
		return fmt.Sprintf("Metadata: at most %d characters of compact JSON", c.metadataCap)
	}
	return ""
}

// AddExchanges appends exchanges to an agent's conversation, as if they had
// been made before the test. A zero Time becomes the fake's time. An unknown
// agent and a Text over the bound of interface 8.4 panic.
func (s *Server) AddExchanges(agentID string, exchanges ...Exchange) {
	now := s.now()
	added := slices.Clone(exchanges)
	for i := range added {
		e := &added[i]
		checkField("AddExchanges", "Text", spec.MessageText, e.Text)
		e.Time = cmp.Or(e.Time, now).UTC().Round(0)
		e.Warnings = slices.Clone(e.Warnings)
	}
	s.withAgent("AddExchanges", agentID, func(a *agent) {
		for _, e := range added {
			a.exchanges.add(e, s.config.exchangeLimit())
		}
	})
}

// StoreBYOK stores a provider key and its configuration for key, as if PUT
// /v1/byok had been called before the test. It spends no limit and leaves no
// call. It works while BYOK is not available too, and for keys that are not
// dashboard-issued. The provider key is encrypted at once. StoreBYOK fills
// Fingerprint, and UpdatedAt with the fake's time, and returns the result.
//
// A key that this fake did not issue, an unknown Provider and an empty provider
// key panic.
func (s *Server) StoreBYOK(key, providerKey string, c BYOK) BYOK {
	checkField("StoreBYOK", "Provider", spec.BYOKProvider, c.Provider)
	if c.Provider == "" || providerKey == "" {
		misuse("StoreBYOK", "a provider key and its Provider are required")
	}
	c.UpdatedAt = s.now()
	s.withKey("StoreBYOK", key, func(k *apiKey) {
		k.byok = s.sealed(providerKey, c)
		c = k.byok.BYOK
	})
	return c
}
