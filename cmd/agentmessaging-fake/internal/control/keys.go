package control

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const maxKeys = 10_000

// firstLabel is the label of the first key.
const firstLabel = "key_000001"

type key struct {
	*Server
	fakedoor.Key
	text string
}

const noSuchKey = "no key has this label, such as key_000001; GET keys lists them"

// ofKey finds the key of a path for an act.
func ofKey(act func(key, *request) (any, error)) handler {
	return locked(func(s *Server, r *request) (any, error) {
		label := r.param("key")
		text, found := s.admin().KeyLabeled(label)
		if !found {
			return nil, notFound(noSuchKey)
		}
		keys := s.admin().Keys()
		i := slices.IndexFunc(keys, func(k fakedoor.Key) bool { return k.Label == label })
		return act(key{s, keys[i], text}, r)
	})
}

// keyOf is the text of the key that a body or a query names.
func (s *Server) keyOf(name, label string) (string, error) {
	text, found := s.admin().KeyLabeled(label)
	if !found {
		return "", badRequest(name, noSuchKey)
	}
	return text, nil
}

type keyView struct {
	fakedoor.Key
	Default bool `json:"default"`
}

func viewOfKey(k fakedoor.Key) keyView { return keyView{k, k.Label == firstLabel} }

// listKeys is GET keys.
func (s *Server) listKeys(*request) (any, error) {
	views := []keyView{}
	for _, k := range s.admin().Keys() {
		views = append(views, viewOfKey(k))
	}
	return map[string]any{"keys": views}, nil
}

type newKey struct {
	Plan      string `json:"plan" check:"plan"`
	Dashboard *bool  `json:"dashboard"`
}

// issueKey is POST keys, the one answer with the text of a key.
func (s *Server) issueKey(body newKey) (any, error) {
	if len(s.admin().Keys()) >= maxKeys {
		return nil, conflict("there are %d keys already, and no more are issued; POST reset forgets them", maxKeys)
	}
	text := s.fake.IssueKey(fakeserver.KeyOptions{
		Plan: fakeserver.Plan(body.Plan), NotDashboard: body.Dashboard != nil && !*body.Dashboard,
	})
	keys := s.admin().Keys()
	k := keys[len(keys)-1]
	return struct {
		Label     string `json:"label"`
		Key       string `json:"key"`
		Plan      string `json:"plan"`
		Dashboard bool   `json:"dashboard"`
	}{k.Label, text, string(k.Plan), k.Dashboard}, nil
}

// keyChange is the body of PATCH keys/{key}; what is left out stays as it is.
type keyChange struct {
	Plan    string `json:"plan" check:"plan"`
	Revoked *bool  `json:"revoked"`
}

func (b keyChange) flaw() error {
	if b.Plan == "" && b.Revoked == nil {
		return badRequest("body", "needs plan or revoked")
	}
	return nil
}

// change is PATCH keys/{key}.
func (k key) change(body keyChange) (any, error) {
	if body.Plan != "" {
		k.Plan = body.Plan
		k.fake.SetPlan(k.text, fakeserver.Plan(k.Plan))
	}
	if body.Revoked != nil {
		k.Revoked = *body.Revoked
		act := k.fake.ReinstateKey
		if k.Revoked {
			act = k.fake.RevokeKey
		}
		act(k.text)
	}
	return viewOfKey(k.Key), nil
}

type limitView struct {
	LimitKey string     `json:"limit_key"`
	Max      *int       `json:"max"`
	Used     int        `json:"used"`
	Left     *int       `json:"left"`
	Window   string     `json:"window"`
	OpensAt  *time.Time `json:"opens_at"`
}

// limits is GET keys/{key}/limits.
func (k key) limits(r *request) (any, error) {
	address, asked := r.given("address")
	if !asked {
		address = cmp.Or(k.Address, "127.0.0.1")
	}
	if r.refuse("address", isAddress(address)); r.flaw != nil {
		return nil, r.flaw
	}
	address = netip.MustParseAddr(address).Unmap().WithZone("").String()
	views := []limitView{}
	for i, l := range k.fake.Limits(k.text, fakeserver.FromIP(address)) {
		views = append(views, viewOfLimit(l, spec.Limits[i].Window))
	}
	return map[string]any{"address": address, "limits": views}, nil
}

func viewOfLimit(l fakeserver.LimitState, window time.Duration) limitView {
	v := limitView{LimitKey: string(l.Key), Used: l.Used, Window: window.String()}
	left := max(0, l.Max-l.Used)
	if !l.Opens.IsZero() {
		v.OpensAt, left = &l.Opens, 0
	}
	if l.Max < noLimit || left == 0 {
		v.Left = &left
	}
	if l.Max < noLimit {
		v.Max = &l.Max
	}
	return v
}

// exhaust is POST keys/{key}/limits/{limit_key}/exhaust.
func (k key) exhaust(r *request) (any, error) {
	if !slices.Contains(limitNames(), r.param("limit_key")) {
		return nil, notFound("no limit has this key; the limit keys are " + listed(limitNames()))
	}
	k.fake.Exhaust(k.text, fakeserver.Limit(r.param("limit_key")))
	return nil, nil
}
