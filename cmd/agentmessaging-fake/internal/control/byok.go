package control

import "github.com/agent-messaging-service/agentmessaging-go/fakeserver"

// byok is GET keys/{key}/byok.
func (k key) byok(*request) (any, error) {
	var stored *fakeserver.BYOK
	if found, set := k.fake.BYOK(k.text); set {
		stored = &found
	}
	return map[string]*fakeserver.BYOK{"byok": stored}, nil
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
func (s *Server) available(*request) (any, error) {
	return availability{s.admin().BYOKAvailable()}, nil
}

// setAvailable is PUT byok.
func (s *Server) setAvailable(body availability) (any, error) {
	s.fake.SetBYOKAvailable(body.Available)
	return body, nil
}
