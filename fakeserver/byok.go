package fakeserver

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Modes of warm-up and of agents: interface 2.3 and 3.
const (
	modeHosted = "hosted"
	modeBYOK   = "byok"
)

// byokConfig is the BYOK configuration of an API key: interface 2.4. It holds
// the provider key encrypted only.
type byokConfig struct {
	provider       string
	baseURL, model *string
	label          string // stored; no answer has it
	sealed         []byte
	fingerprint    string
	updatedAt      time.Time
}

func (c *byokConfig) wire() *byokWire {
	if c == nil {
		return nil
	}
	return &byokWire{
		Provider:    c.provider,
		BaseURL:     c.baseURL,
		Model:       c.model,
		Fingerprint: c.fingerprint,
		UpdatedAt:   wireTime(c.updatedAt),
	}
}

// getBYOK is interface 4.3. Reading does not need the store to be available:
// 503 is not listed for it.
func (s *Server) getBYOK(req *request) (operation, *failure) {
	if !req.key.dashboard {
		return operation{}, forbidden()
	}
	return operation{act: func() reply {
		return &byokReply{OK: true, BYOK: req.key.byok.wire()}
	}}, nil
}

// setBYOK is interface 4.4.
func (s *Server) setBYOK(req *request) (operation, *failure) {
	switch {
	case !req.key.dashboard:
		return operation{}, forbidden()
	case req.malformed != nil:
		return operation{}, req.malformed
	case req.world.byokUnavailable:
		return operation{}, byokUnavailable(503, spec.BYOKAPIKey)
	}
	return operation{limits: []spec.LimitKey{spec.BYOKSetKeyHour}, act: func() reply {
		req.key.byok = s.newBYOK(req, byokFields)
		return &byokReply{OK: true, BYOK: req.key.byok.wire()}
	}}, nil
}

// clearBYOK is interface 4.5. Clearing what is not set succeeds.
func (s *Server) clearBYOK(req *request) (operation, *failure) {
	if !req.key.dashboard {
		return operation{}, forbidden()
	}
	return operation{act: func() reply {
		req.key.byok = nil
		return &okReply{OK: true}
	}}, nil
}

// keyFields are the fields that a provider key comes in: its own endpoint has
// other names for them than agent creation.
type keyFields struct{ apiKey, provider, baseURL, model, label *spec.Field }

var (
	byokFields  = keyFields{spec.BYOKAPIKey, spec.BYOKProvider, spec.BYOKBaseURL, spec.BYOKModel, spec.BYOKLabel}
	agentFields = keyFields{spec.LLMAPIKey, spec.LLMProvider, spec.LLMBaseURL, spec.LLMModel, spec.LLMLabel}
)

// newBYOK seals the provider key of a request. The lock is held.
func (s *Server) newBYOK(req *request, f keyFields) *byokConfig {
	return s.sealed(req.members.text(f.apiKey), byokConfig{
		provider:  req.members.text(f.provider),
		baseURL:   req.members.optional(f.baseURL),
		model:     req.members.optional(f.model),
		label:     req.members.text(f.label),
		updatedAt: req.now,
	})
}

// sealed completes a configuration with what is kept of its key. The lock is
// held.
func (s *Server) sealed(key string, c byokConfig) *byokConfig {
	if s.vault == nil {
		s.vault = newVault()
	}
	c.sealed, c.fingerprint = s.vault.seal(key), s.vault.fingerprint(key)
	return &c
}

// BYOKAvailable reports whether the BYOK store is available: what
// SetBYOKAvailable said last, or true.
func (s *Server) BYOKAvailable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.world.byokUnavailable
}

// SetBYOKAvailable makes the BYOK store available or not, for all keys. While
// it is not, PUT /v1/byok and warm-up in byok mode answer 503 (interface 4.2,
// 4.4), and agent creation with llm.api_key answers 400, since 503 is not
// listed for it.
func (s *Server) SetBYOKAvailable(available bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.byokUnavailable = !available
}
