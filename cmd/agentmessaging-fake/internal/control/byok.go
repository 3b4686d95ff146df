package control

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

type byokView struct {
	Provider    string    `json:"provider"`
	BaseURL     *string   `json:"base_url"`
	Model       *string   `json:"model"`
	Label       *string   `json:"label"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// byok is GET keys/{key}/byok.
func (k key) byok(*request) (any, error) {
	c, set := k.fake.BYOK(k.text)
	if !set {
		return map[string]any{"byok": nil}, nil
	}
	return map[string]any{"byok": byokView{
		c.Provider, nullable(c.BaseURL), nullable(c.Model), nullable(c.Label), c.Fingerprint, c.UpdatedAt,
	}}, nil
}

// newBYOK is the body of PUT keys/{key}/byok. No reason repeats a value: one of
// them is a provider key, and they may have been mixed up.
type newBYOK struct {
	Provider string `json:"provider" check:"required provider"`
	APIKey   string `json:"api_key" check:"required filled"`
	BaseURL  string `json:"base_url"`
	Model    string `json:"model"`
	Label    string `json:"label"`
}

// storeBYOK is PUT keys/{key}/byok.
func (k key) storeBYOK(body newBYOK) (any, error) {
	k.fake.StoreBYOK(k.text, body.APIKey, fakeserver.BYOK{
		Provider: body.Provider, BaseURL: body.BaseURL, Model: body.Model, Label: body.Label,
	})
	return k.byok(nil)
}

type availability struct {
	Available bool `json:"available" check:"required"`
}

// available is GET byok.
func (w *world) available(*request) (any, error) {
	return availability{w.fake.Admin().BYOKAvailable()}, nil
}

// setAvailable is PUT byok.
func (w *world) setAvailable(body availability) (any, error) {
	w.fake.SetBYOKAvailable(body.Available)
	return body, nil
}
