package control

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

type byokView struct {
	Provider    string    `json:"provider"`
	BaseURL     *string   `json:"base_url"`
	Model       *string   `json:"model"`
	Label       *string   `json:"label"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func viewOfBYOK(c fakeserver.BYOK) *byokView {
	return &byokView{c.Provider, nullable(c.BaseURL), nullable(c.Model), nullable(c.Label), c.Fingerprint, c.UpdatedAt}
}

// keyBYOK is GET keys/{key}/byok.
func (w *world) keyBYOK(r *request) (answer, *refusal) {
	_, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	var view *byokView
	if c, set := w.fake.BYOK(text); set {
		view = viewOfBYOK(c)
	}
	return ok(map[string]any{"byok": view})
}

// storeBYOK is PUT keys/{key}/byok. No reason repeats a value: one of them is
// a provider key, and they may have been mixed up.
func (w *world) storeBYOK(r *request) (answer, *refusal) {
	_, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	body, refused := decode[struct {
		Provider string `json:"provider" check:"required"`
		APIKey   string `json:"api_key" check:"required"`
		BaseURL  string `json:"base_url"`
		Model    string `json:"model"`
		Label    string `json:"label"`
	}](r.body)
	if refused == nil {
		refused = oneOf("provider", body.Provider, spec.Providers)
	}
	if refused == nil && body.APIKey == "" {
		refused = badRequest("api_key", "must not be empty")
	}
	if refused != nil {
		return answer{}, refused
	}
	c := w.fake.StoreBYOK(text, body.APIKey, fakeserver.BYOK{
		Provider: body.Provider, BaseURL: body.BaseURL, Model: body.Model, Label: body.Label,
	})
	w.hub.changed(changedBYOK)
	return ok(map[string]any{"byok": viewOfBYOK(c)})
}

// available is GET byok.
func (w *world) available(*request) (answer, *refusal) {
	return ok(map[string]any{"available": w.fake.Admin().BYOKAvailable()})
}

// setAvailable is PUT byok.
func (w *world) setAvailable(r *request) (answer, *refusal) {
	body, refused := decode[struct {
		Available bool `json:"available" check:"required"`
	}](r.body)
	if refused != nil {
		return answer{}, refused
	}
	w.fake.SetBYOKAvailable(body.Available)
	w.hub.changed(changedBYOK)
	return w.available(r)
}
