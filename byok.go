package agentmessaging

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Provider is a model provider whose key can be stored (interface 2.3).
type Provider string

// The providers.
const (
	ProviderOpenAICompat Provider = "openai_compat"
	ProviderOpenAI       Provider = "openai"
	ProviderAnthropic    Provider = "anthropic"
)

// BYOKConfig describes the provider key that is stored for an API key
// (interface 2.4). The key itself is never returned.
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

// SetBYOKParams are a provider key to store (interface 4.4), which states no
// lengths.
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

func (p SetBYOKParams) validate() error {
	return firstError(
		check(spec.BYOKProvider, string(p.Provider)),
		check(spec.BYOKAPIKey, string(p.APIKey)),
		check(spec.BYOKBaseURL, p.BaseURL),
		check(spec.BYOKModel, p.Model),
		check(spec.BYOKLabel, p.Label),
	)
}

type setBYOKBody struct {
	Provider Provider `json:"provider"`
	APIKey   string   `json:"api_key"`
	BaseURL  string   `json:"base_url,omitempty"`
	Model    string   `json:"model,omitempty"`
	Label    string   `json:"label,omitempty"`
}

type byokConfig struct {
	Provider    Provider  `json:"provider"`
	BaseURL     *string   `json:"base_url"`
	Model       *string   `json:"model"`
	Fingerprint string    `json:"fingerprint"`
	UpdatedAt   Timestamp `json:"updated_at"`
}

// byokAnswer is the body of GET and PUT. BYOK is raw so that null, which says
// that no key is stored, differs from a member that is missing.
type byokAnswer struct {
	OK   bool            `json:"ok"`
	BYOK json.RawMessage `json:"byok"`
	envelope
}

func (a *byokAnswer) result() (*BYOKConfig, error) {
	if a.BYOK == nil {
		return nil, errors.New("byok is missing")
	}
	var config *byokConfig
	if err := json.Unmarshal(a.BYOK, &config); err != nil || config == nil {
		return nil, err
	}
	if config.Provider == "" {
		return nil, errors.New("byok.provider is missing")
	}
	return &BYOKConfig{
		Provider:    config.Provider,
		BaseURL:     valueOf(config.BaseURL),
		Model:       valueOf(config.Model),
		Fingerprint: config.Fingerprint,
		UpdatedAt:   config.UpdatedAt,
		TraceID:     a.TraceID,
	}, nil
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// setBYOKAnswer differs from byokAnswer in that null is no success.
type setBYOKAnswer struct{ byokAnswer }

func (a *setBYOKAnswer) result() (*BYOKConfig, error) {
	config, err := a.byokAnswer.result()
	if err == nil && (config == nil || !a.OK) {
		err = errNotOK
	}
	return config, err
}

type okAnswer struct {
	OK bool `json:"ok"`
	envelope
}

var errNotOK = errors.New("the service did not confirm the change")

func (a *okAnswer) result() (struct{}, error) {
	if !a.OK {
		return struct{}{}, errNotOK
	}
	return struct{}{}, nil
}

// GetBYOK reads what is stored for this API key (interface 4.3). It returns
// nil and no error when nothing is.
//
// Errors: [ErrUnauthorized], [ErrPaymentRequired], [ErrForbidden] for a key
// that the dashboard did not issue, [ErrNotFound].
func (c *Client) GetBYOK(ctx context.Context) (*BYOKConfig, error) {
	return do[*BYOKConfig](ctx, c, request{endpoint: spec.GetBYOK, decode: decode[*BYOKConfig, byokAnswer]})
}

// SetBYOK stores a provider key for this API key, in place of any earlier one
// (interface 4.4). Agents in byok mode use it. It spends one of 5 BYOK sets
// an hour (interface 8.1).
//
// Errors: [ErrInvalid], [ErrBadRequest], [ErrUnauthorized],
// [ErrPaymentRequired], [ErrForbidden], [ErrRateLimited], [ErrUnavailable].
func (c *Client) SetBYOK(ctx context.Context, params SetBYOKParams) (*BYOKConfig, error) {
	return do[*BYOKConfig](ctx, c, request{
		endpoint: spec.SetBYOK,
		decode:   decode[*BYOKConfig, setBYOKAnswer],
		invalid:  params.validate(),
		body:     setBYOKBody{params.Provider, string(params.APIKey), params.BaseURL, params.Model, params.Label},
		secrets:  [2]string{string(params.APIKey)},
		setsBYOK: true,
	})
}

// ClearBYOK removes what is stored for this API key (interface 4.5).
//
// Errors: [ErrUnauthorized], [ErrPaymentRequired], [ErrForbidden],
// [ErrNotFound].
func (c *Client) ClearBYOK(ctx context.Context) error {
	_, err := do[struct{}](ctx, c, request{endpoint: spec.ClearBYOK, decode: decode[struct{}, okAnswer]})
	return err
}
