package agentmessaging

import (
	"cmp"
	"context"
	"errors"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// BYOKConfig describes the provider key that is stored for an API key (BYOK,
// bring your own key; interface 2.4). The key itself is never returned.
type BYOKConfig struct {
	Provider Provider `json:"provider"`
	// BaseURL and Model are empty where the service reports null.
	BaseURL string `json:"base_url,omitempty"`
	Model   string `json:"model,omitempty"`
	// Fingerprint identifies the stored key and cannot be turned back into it.
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   Timestamp `json:"updated_at"`
	// TraceID identifies the call; quote it when reporting an issue.
	TraceID string `json:"trace_id"`
}

// SetBYOKParams describe a provider key to store (interface 4.4). The interface states no
// bounds on lengths.
type SetBYOKParams struct {
	// Provider and APIKey are required.
	Provider Provider
	APIKey   Secret
	// BaseURL is the provider's address, for example a gateway.
	BaseURL string
	// Model overrides the model.
	Model string
	// Label names the configuration.
	Label string
}

type setBYOKBody struct {
	Provider Provider `json:"provider"`
	APIKey   string   `json:"api_key"`
	BaseURL  string   `json:"base_url,omitempty"`
	Model    string   `json:"model,omitempty"`
	Label    string   `json:"label,omitempty"`
}

func (p SetBYOKParams) validate() error {
	return cmp.Or(
		checkField(spec.BYOKProvider, string(p.Provider)),
		checkProviderKey(spec.BYOKAPIKey, p.APIKey),
		checkField(spec.BYOKBaseURL, p.BaseURL),
		checkField(spec.BYOKModel, p.Model),
		checkField(spec.BYOKLabel, p.Label),
	)
}

// readBYOK reads the configuration in the answer to a GET or a PUT. null means that no key
// is stored. The answer counts only if ok is true. If the configuration is missing or
// incomplete, that is the error, even if ok is missing too: the client then repeats a GET.
func readBYOK(b *answerBody) *BYOKConfig {
	if value, _ := b.members.Get("byok"); string(value) == "null" {
		requireOK(b)
		return nil
	}
	byok, ok := b.object("byok")
	if !ok {
		b.fail(errors.New("byok is missing or not an object"))
	}
	config := &BYOKConfig{
		Provider: Provider(byok.needNonEmpty("provider")), BaseURL: byok.text("base_url"), Model: byok.text("model"),
		Fingerprint: byok.text("fingerprint"), UpdatedAt: Timestamp(byok.text("updated_at")), TraceID: b.traceID,
	}
	b.fail(byok.err)
	requireOK(b)
	return config
}

// readSetBYOK reads the answer to PUT. The service has stored the key only if ok is true
// and the answer has the configuration.
func readSetBYOK(b *answerBody) *BYOKConfig {
	if requireOK(b); b.err != nil {
		return nil
	}
	config := readBYOK(b)
	if config == nil || b.err != nil {
		b.err = unconfirmed("without a configuration")
	}
	return config
}

// requireOK fails the body unless its member ok is true.
func requireOK(b *answerBody) {
	if ok, _ := b.members.Get("ok"); string(ok) != "true" {
		b.fail(unconfirmed("without ok true"))
	}
}

// GetBYOK reads the BYOK configuration of this API key (interface 4.3). It returns
// nil and no error if none is stored. An answer without ok true is an error.
//
// Errors: [ErrUnauthorized], [ErrPaymentRequired], [ErrForbidden] for a key
// that the dashboard did not issue, [ErrNotFound].
func (c *Client) GetBYOK(ctx context.Context) (*BYOKConfig, error) {
	return do(ctx, c, request{endpoint: spec.GetBYOK}, readBYOK)
}

// SetBYOK stores a provider key for this API key, in place of any earlier one
// (interface 4.4). Agents in byok mode use it. It spends one of 5 BYOK sets
// an hour (interface 8.1). If the answer is a JSON object without ok true, or without a
// configuration, SetBYOK returns an error and does not retry.
//
// Errors: [ErrInvalid], [ErrBadRequest], [ErrUnauthorized],
// [ErrPaymentRequired], [ErrForbidden], [ErrRateLimited], [ErrUnavailable].
func (c *Client) SetBYOK(ctx context.Context, params SetBYOKParams) (*BYOKConfig, error) {
	r := request{endpoint: spec.SetBYOK, invalid: params.validate(), providerKey: string(params.APIKey)}
	r.body = setBYOKBody{
		Provider: params.Provider, APIKey: string(params.APIKey), BaseURL: params.BaseURL, Model: params.Model, Label: params.Label,
	}
	return do(ctx, c, r, readSetBYOK)
}

// ClearBYOK removes the provider key of this API key (interface 4.5). If the answer is a
// JSON object without ok true, ClearBYOK returns an error and does not retry.
//
// Errors: [ErrUnauthorized], [ErrPaymentRequired], [ErrForbidden],
// [ErrNotFound].
func (c *Client) ClearBYOK(ctx context.Context) error {
	_, err := do(ctx, c, request{endpoint: spec.ClearBYOK}, func(b *answerBody) (none struct{}) { requireOK(b); return none })
	return err
}
