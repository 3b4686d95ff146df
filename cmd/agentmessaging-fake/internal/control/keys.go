package control

import (
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// issuedKey is what is shown of a key once, with its text.
type issuedKey struct {
	Label     string `json:"label"`
	Key       string `json:"key"`
	Plan      string `json:"plan"`
	Dashboard bool   `json:"dashboard"`
}

func (w *world) issued(k fakeserver.KeyInfo, text string) issuedKey {
	return issuedKey{k.Label, text, string(k.Plan), k.Dashboard}
}

type keyView struct {
	Label     string    `json:"label"`
	Plan      string    `json:"plan"`
	Dashboard bool      `json:"dashboard"`
	Revoked   bool      `json:"revoked"`
	Default   bool      `json:"default"`
	IssuedAt  time.Time `json:"issued_at"`
}

const maxKeys = 10_000

// firstLabel is the label of a world's first key.
const firstLabel = "key_000001"

func viewOfKey(k fakeserver.KeyInfo) keyView {
	return keyView{k.Label, string(k.Plan), k.Dashboard, k.Revoked, k.Label == firstLabel, k.IssuedAt}
}

// key finds the key of a path.
func (w *world) key(r *request) (info fakeserver.KeyInfo, text string, _ *refusal) {
	text, found := w.fake.Admin().KeyWithLabel(r.param("key"))
	if !found {
		return info, "", notFound("no key of this world has this label")
	}
	keys := w.fake.Admin().Keys()
	i := slices.IndexFunc(keys, func(k fakeserver.KeyInfo) bool { return k.Label == r.param("key") })
	return keys[i], text, nil
}

// keyOf finds the key that a body names.
func (w *world) keyOf(name, label string) (string, *refusal) {
	text, found := w.fake.Admin().KeyWithLabel(label)
	if !found {
		return "", badRequest(name, "no key of this world has this label; GET keys lists them")
	}
	return text, nil
}

// listKeys is GET keys.
func (w *world) listKeys(*request) (answer, *refusal) {
	views := []keyView{}
	for _, k := range w.fake.Admin().Keys() {
		views = append(views, viewOfKey(k))
	}
	return ok(map[string]any{"keys": views})
}

// issueKey is POST keys.
func (w *world) issueKey(r *request) (answer, *refusal) {
	body, refused := decode[struct {
		Plan      *string `json:"plan"`
		Dashboard *bool   `json:"dashboard"`
	}](r.body)
	if refused == nil && body.Plan != nil {
		refused = oneOf("plan", *body.Plan, PlanNames)
	}
	if refused == nil && len(w.fake.Admin().Keys()) >= maxKeys {
		refused = conflict("there are %d keys already, and no more are issued; POST reset forgets them", maxKeys)
	}
	if refused != nil {
		return answer{}, refused
	}
	text := w.fake.IssueKey(fakeserver.KeyOptions{
		Plan: fakeserver.Plan(given(body.Plan)), NotDashboard: body.Dashboard != nil && !*body.Dashboard,
	})
	w.hub.changed(changedKeys)
	keys := w.fake.Admin().Keys()
	return created(w.issued(keys[len(keys)-1], text))
}

// changeKey is PATCH keys/{key}.
func (w *world) changeKey(r *request) (answer, *refusal) {
	info, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	body, refused := decode[struct {
		Plan string `json:"plan" check:"required"`
	}](r.body)
	if refused == nil {
		refused = oneOf("plan", body.Plan, PlanNames)
	}
	if refused != nil {
		return answer{}, refused
	}
	w.fake.SetPlan(text, fakeserver.Plan(body.Plan))
	w.hub.changed(changedKeys)
	info.Plan = fakeserver.Plan(body.Plan)
	return ok(viewOfKey(info))
}

// revokeKey is DELETE keys/{key}.
func (w *world) revokeKey(r *request) (answer, *refusal) {
	_, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	w.fake.RevokeKey(text)
	w.hub.changed(changedKeys)
	return done()
}

// reinstateKey is POST keys/{key}/reinstate.
func (w *world) reinstateKey(r *request) (answer, *refusal) {
	_, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	w.fake.ReinstateKey(text)
	w.hub.changed(changedKeys)
	return done()
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
func (w *world) limits(r *request) (answer, *refusal) {
	info, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	address := or(info.Address, "127.0.0.1")
	if asked, is := r.query["address"]; is {
		ip, err := netip.ParseAddr(asked[0])
		if err != nil {
			return answer{}, badRequest("address", "must be an IP address such as 203.0.113.7")
		}
		address = ip.Unmap().WithZone("").String()
	}
	views := []limitView{}
	for i, l := range w.fake.Admin().LimitsFrom(text, address) {
		views = append(views, viewOfLimit(l, spec.Limits[i].Window))
	}
	return ok(map[string]any{"address": address, "limits": views})
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
func (w *world) exhaust(r *request) (answer, *refusal) {
	_, text, refused := w.key(r)
	if refused != nil {
		return answer{}, refused
	}
	var all []string
	for _, l := range spec.Limits {
		all = append(all, string(l.Key))
	}
	if !slices.Contains(all, r.param("limit_key")) {
		return answer{}, notFound("no limit has this key; the limit keys are " + listed(all))
	}
	w.fake.Exhaust(text, fakeserver.Limit(r.param("limit_key")))
	w.hub.changed(changedLimits)
	return done()
}
