package fakeserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// BYOK is an API key's BYOK configuration without the provider key, which
// cannot be read: interface 2.4, and the label, which no answer returns.
type BYOK struct {
	Provider    string    `json:"provider"`
	BaseURL     string    `json:"base_url,omitempty"` // "" when not given
	Model       string    `json:"model,omitempty"`    // "" when not given
	Label       string    `json:"label,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// byokConfig is a stored configuration. It holds the provider key encrypted
// only, and never changes.
type byokConfig struct {
	BYOK
	sealed []byte
}

func (c *byokConfig) wire(by *choices) *byokWire {
	if c == nil {
		return nil
	}
	return &byokWire{c.Provider, given(c.BaseURL), given(c.Model), c.Fingerprint, by.time(c.UpdatedAt)}
}

// given is nil for a text that is not given.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// getBYOK is interface 4.3. Reading does not need the store to be available:
// 503 is not listed for it.
func (s *Server) getBYOK(req *request) (operation, *failure) {
	if !req.key.Dashboard {
		return operation{}, forbidden
	}
	return operation{act: func() reply {
		return &byokReply{OK: true, BYOK: req.key.byok.wire(s.config.choices)}
	}}, nil
}

// setBYOK is interface 4.4.
func (s *Server) setBYOK(req *request) (operation, *failure) {
	switch {
	case !req.key.Dashboard && (s.config.permissionBeforeBody || req.malformed == nil):
		return operation{}, forbidden
	case req.malformed != nil:
		return operation{}, req.malformed
	case req.world.byokUnavailable:
		return operation{}, byokUnavailable(spec.SetBYOK, spec.BYOKAPIKey)
	}
	return operation{act: func() reply {
		req.key.byok = s.newBYOK(req, byokFields)
		return &byokReply{OK: true, BYOK: req.key.byok.wire(s.config.choices)}
	}}, nil
}

// clearBYOK is interface 4.5. Our decision, the interface is silent: clearing
// succeeds when nothing is set.
func (s *Server) clearBYOK(req *request) (operation, *failure) {
	if !req.key.Dashboard {
		return operation{}, forbidden
	}
	if req.key.byok == nil {
		if f := s.config.clearedNothing(); f != nil {
			return operation{}, f
		}
	}
	return operation{act: func() reply {
		req.key.byok = nil
		return &okReply{OK: true}
	}}, nil
}

// keyFields are the fields that describe a provider key. PUT /v1/byok and agent
// creation name them differently.
type keyFields struct{ apiKey, provider, baseURL, model, label *spec.Field }

var (
	byokFields  = keyFields{spec.BYOKAPIKey, spec.BYOKProvider, spec.BYOKBaseURL, spec.BYOKModel, spec.BYOKLabel}
	agentFields = keyFields{spec.LLMAPIKey, spec.LLMProvider, spec.LLMBaseURL, spec.LLMModel, spec.LLMLabel}
)

// newBYOK seals the provider key of a request. The lock is held.
func (s *Server) newBYOK(req *request, f keyFields) *byokConfig {
	m := req.members
	return s.sealed(m.text(f.apiKey), BYOK{
		Provider: m.text(f.provider), BaseURL: m.text(f.baseURL), Model: m.text(f.model), Label: m.text(f.label),
		UpdatedAt: req.now,
	})
}

// sealed adds the encrypted key and its fingerprint to a configuration. The
// lock is held.
func (s *Server) sealed(key string, c BYOK) *byokConfig {
	if s.vault == nil {
		s.vault = newVault()
	}
	c.Fingerprint = s.vault.fingerprint(key)
	return &byokConfig{c, s.vault.seal(key)}
}

// SetBYOKAvailable makes the BYOK store available or not, for all keys. While
// it is not, PUT /v1/byok and warm-up in byok mode answer 503 (interface 4.2,
// 4.4). Agent creation with llm.api_key then answers 400, since the interface
// lists no 503 for it. A key that is stored already goes on serving its agents.
func (s *Server) SetBYOKAvailable(available bool) {
	s.locked(func(w *world) { w.byokUnavailable = !available })
}

// BYOK returns the BYOK configuration of key, and whether one is set. A key
// that this fake did not issue panics.
func (s *Server) BYOK(key string) (c BYOK, set bool) {
	s.withKey("BYOK", key, func(k *apiKey) {
		if set = k.byok != nil; set {
			c = k.byok.BYOK
		}
	})
	return c, set
}

// vault encrypts provider keys under its own key: the service stores them
// encrypted and never returns them (interface 2.4). The fake never decrypts
// one, since it calls no provider.
type vault struct {
	aead   cipher.AEAD
	macKey []byte
}

func newVault() *vault {
	block, err := aes.NewCipher(randomBytes(32)) // AES-256
	if err != nil {
		panic(err) // only a wrong key length fails
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only a wrong block size fails
	}
	return &vault{aead: aead, macKey: randomBytes(32)}
}

// seal returns the nonce and, behind it, the encrypted plaintext.
func (v *vault) seal(plaintext string) []byte {
	nonce := randomBytes(v.aead.NonceSize())
	return v.aead.Seal(nonce, nonce, []byte(plaintext), nil)
}

// fingerprintBytes gives a fingerprint 16 hexadecimal digits: enough to tell
// keys apart, too few to rebuild one.
const fingerprintBytes = 8

// fingerprint is a keyed hash, so that nobody outside the fake can confirm a
// guessed key.
func (v *vault) fingerprint(plaintext string) string {
	mac := hmac.New(sha256.New, v.macKey)
	mac.Write([]byte(plaintext))
	return hex.EncodeToString(mac.Sum(nil)[:fingerprintBytes])
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return b
}
