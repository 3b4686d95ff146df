package service

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

// BYOK is a stored BYOK configuration: interface 2.4, and the label, which no
// answer returns. It never changes.
type BYOK struct {
	Provider    string    `json:"provider"`
	BaseURL     string    `json:"base_url,omitempty"` // "" when not given
	Model       string    `json:"model,omitempty"`    // "" when not given
	Label       string    `json:"label,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   time.Time `json:"updated_at"`
	sealed      []byte    // the provider key, encrypted
}

// warmUp is interface 4.2.
func (c *call) warmUp() Answer {
	c.key.Warm = true
	mode := spec.ModeHosted // the default
	if c.wantsBYOK() {
		mode = spec.ModeBYOK
	}
	return Answer{Reply: Warmed{mode}}
}

// getBYOK is interface 4.3. Reading does not need the store to be available: 503
// is not listed for it.
func (c *call) getBYOK() Answer { return Answer{Reply: Config{c.key.BYOK}} }

// setBYOK is interface 4.4.
func (c *call) setBYOK() Answer {
	c.key.BYOK = c.newBYOK(byokFields)
	return Answer{Reply: Config{c.key.BYOK}}
}

// clearBYOK is interface 4.5. Clearing succeeds when nothing is set, unless
// Behavior says otherwise.
func (c *call) clearBYOK() Answer {
	if c.key.BYOK != nil {
		c.key.Cleared = c.now
	}
	c.key.BYOK = nil
	return Answer{Reply: OK{}}
}

// keyFields are the fields that describe a provider key. PUT /v1/byok and agent
// creation name them differently.
type keyFields struct{ apiKey, provider, baseURL, model, label *spec.Field }

var (
	byokFields  = keyFields{spec.BYOKAPIKey, spec.BYOKProvider, spec.BYOKBaseURL, spec.BYOKModel, spec.BYOKLabel}
	agentFields = keyFields{spec.LLMAPIKey, spec.LLMProvider, spec.LLMBaseURL, spec.LLMModel, spec.LLMLabel}
)

func (c *call) newBYOK(f keyFields) *BYOK {
	m := c.req.Fields
	return c.state.Seal(m[f.apiKey], BYOK{
		Provider: m[f.provider], BaseURL: m[f.baseURL], Model: m[f.model], Label: m[f.label],
		UpdatedAt: c.now,
	})
}

// Seal adds the encrypted provider key and its fingerprint to a configuration.
func (s *State) Seal(providerKey string, c BYOK) *BYOK {
	if s.vault == nil { // making one costs as much as the rest of a fake
		s.vault = newVault()
	}
	c.Fingerprint, c.sealed = s.vault.fingerprint(providerKey), s.vault.seal(providerKey)
	return &c
}

// vault encrypts provider keys under its own key: the service stores them
// encrypted and never returns them (interface 2.4). Nothing decrypts one here,
// since no provider is called.
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

// seal returns the nonce, followed by the encrypted plaintext.
func (v *vault) seal(plaintext string) []byte {
	nonce := randomBytes(v.aead.NonceSize())
	return v.aead.Seal(nonce, nonce, []byte(plaintext), nil)
}

// fingerprintBytes gives a fingerprint 16 hexadecimal digits: enough to tell
// keys apart, too few to rebuild one.
const fingerprintBytes = 8

// fingerprint is a keyed hash, so that nobody outside can confirm a guessed key.
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
