package service

import (
	"net/netip"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Kind is why a call is refused.
type Kind int

// The kinds, in the order of interface 7.
const (
	BadRequest Kind = iota + 1
	NoToken
	UnknownKey
	RevokedKey
	PaymentRequired
	NotDashboard
	NoSuchPath
	NoSuchAgent
	NothingStored
	MethodNotAllowed
	BYOKNotConfigured
	RateLimited
	BYOKUnavailable
	Scripted // a ReplyFunc asked for it
)

// kinds are the status and the error identifier of each kind. Interface 7 shows
// only rate_limited; the fake chose the other identifiers.
var kinds = map[Kind]struct {
	status int
	code   string
}{
	BadRequest:        {400, "bad_request"},
	NoToken:           {401, "unauthorized"},
	UnknownKey:        {401, "unauthorized"},
	RevokedKey:        {401, "unauthorized"},
	PaymentRequired:   {402, "payment_required"},
	NotDashboard:      {403, "forbidden"},
	NoSuchPath:        {404, "not_found"},
	NoSuchAgent:       {404, "not_found"},
	NothingStored:     {404, "not_found"},
	MethodNotAllowed:  {405, "method_not_allowed"},
	BYOKNotConfigured: {409, "byok_not_configured"},
	RateLimited:       {429, spec.RateLimited},
	BYOKUnavailable:   {503, "byok_unavailable"},
}

// Refusal is the decision not to carry out a call, with the facts behind it.
// What it says to the client, and to the author of a test, is not decided here.
type Refusal struct {
	Kind          Kind
	As            Kind   // what it is answered and counted as: Kind, but for some refusals about BYOK
	Status        int    // of As
	Code          string // the error member of the body
	Field         string // the member that a 400, 409 or 503 is about
	Broken        string // the rule that the member breaks, in words without its value; of a script, its reason
	UnknownMember string // of a 400: the path of a member that Field, the object around it, does not have
	Limit         spec.LimitKey
	Wait          int    // seconds for Retry-After, 429 only
	Allow         string // the methods that the path takes, 405 only

	// Facts of which the client sees nothing.
	Key    string     // the label of the call's key
	IP     netip.Addr // whose limit it is, if it is one per address
	Owner  string     // the label of the key that the agent belongs to
	Since  time.Time  // when the key was revoked, or BYOK was cleared
	State  LimitState // of the limit that refuses
	Length int        // of a text that is too long, in the unit of Behavior
	Max    int        // allowed length
}

// Refuse makes a refusal of a kind, with its usual status.
func Refuse(kind Kind) *Refusal {
	return &Refusal{Kind: kind, As: kind, Status: kinds[kind].status, Code: kinds[kind].code}
}

// BadField is a 400 about a member of the body. Neither argument may quote a
// value, which may be a key or a message.
func BadField(field, broken string) *Refusal {
	r := Refuse(BadRequest)
	r.Field, r.Broken = field, broken
	return r
}

// answerAs gives the refusal the status of another kind.
func (r *Refusal) answerAs(kind Kind) { r.As, r.Status = kind, kinds[kind].status }

// about is a refusal about BYOK, with its usual status where the endpoint lists
// it, and that of BadRequest elsewhere. field is the member that needs what is missing.
func (c *call) about(kind Kind, field *spec.Field) *Refusal {
	r := Refuse(kind)
	r.Field, r.Key = field.Path, c.key.Label
	if !c.req.Endpoint.Lists(r.Status) {
		r.answerAs(BadRequest)
	}
	return r
}
