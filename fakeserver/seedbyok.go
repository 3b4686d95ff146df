package fakeserver

import (
	"fmt"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// BYOK is what can be read of an API key's BYOK configuration: interface 2.4,
// and the label. The provider key cannot.
type BYOK struct {
	Provider       string
	BaseURL, Model string // "" when not given
	Label          string
	Fingerprint    string
	UpdatedAt      time.Time
}

// BYOK returns the BYOK configuration of key, and whether one is set. A key
// that this fake did not issue panics.
func (s *Server) BYOK(key string) (c BYOK, set bool) {
	s.withKey("BYOK", key, func(k *apiKey) {
		if set = k.byok != nil; set {
			c = k.byok.copied()
		}
	})
	return c, set
}

func (c *byokConfig) copied() BYOK {
	return BYOK{
		Provider: c.provider, BaseURL: deref(c.baseURL), Model: deref(c.model), Label: c.label,
		Fingerprint: c.fingerprint, UpdatedAt: c.updatedAt,
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// BYOKOptions are a BYOK configuration for StoreBYOK: interface 4.4. Provider
// and APIKey are required. It prints without the APIKey.
type BYOKOptions struct {
	Provider string
	APIKey   string `json:"-"`
	BaseURL  string // "" is not given
	Model    string // "" is not given
	Label    string
}

// Format prints everything but the APIKey, whatever the verb.
func (o BYOKOptions) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{Provider:%s APIKey:%s BaseURL:%s Model:%s Label:%s}",
		o.Provider, redactedKey, o.BaseURL, o.Model, o.Label)
}

// StoreBYOK stores a BYOK configuration for key, as if PUT /v1/byok had been
// called before the test: it spends no limit, leaves no call, and works for
// keys that are not dashboard-issued and while BYOK is not available. The
// provider key is encrypted at once. It returns what BYOK returns then.
//
// A key that this fake did not issue, an unknown Provider and an empty APIKey
// panic.
func (s *Server) StoreBYOK(key string, o BYOKOptions) (stored BYOK) {
	checkField("StoreBYOK", "Provider", spec.BYOKProvider, o.Provider)
	if o.Provider == "" || o.APIKey == "" {
		misuse("StoreBYOK", "Provider and APIKey are required")
	}
	now := s.now()
	s.withKey("StoreBYOK", key, func(k *apiKey) {
		k.byok = s.sealed(o.APIKey, byokConfig{
			provider: o.Provider, baseURL: given(o.BaseURL), model: given(o.Model), label: o.Label, updatedAt: now,
		})
		stored = k.byok.copied()
	})
	return stored
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
