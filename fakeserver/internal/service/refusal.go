package service

import (
	"net/netip"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Kind says why a call is refused. Several kinds share a status: an unknown key and a
// revoked key are both 401, and a client cannot tell them apart (interface 5.4).
type Kind int

// The kinds, in the order of interface 7. The zero Kind is for an answer that a test
// injects. Its row in Kinds is empty.
const (
	BadRequest Kind = iota + 1
	NoToken
	UnknownKey
	RevokedKey
	PaymentRequired
	NotDashboard
	NoSuchAgent
	NoSuchPath
	NothingStored
	MethodNotAllowed
	BYOKNotConfigured
	RateLimited
	BYOKUnavailable
	Scripted       // a ReplyFunc asked for the refusal
	UnlistedStatus // a ReplyFunc asked for a status that interface 4.8 does not list
)

// Kinds has a row for each kind of refusal: the answer for the client, and the sentence
// for the author of a test. Interface 7 shows the error identifier rate_limited; the fake
// chose the others.
var Kinds = [...]struct {
	Status int
	Code   string // the error of the body, unless Behavior has another name
	Reason string // the reason of the body; "" if Refusal.Broken has it
	// Why is the sentence for the author of a test, with KEY in place of the key's label; "" if
	// package wire makes the sentence from the facts or from Reason.
	Why string
}{
	// Columns: status, error identifier, reason for the client, sentence for the
	// author.
	BadRequest:        {400, fakenames.BadRequest, "", ""},
	NoToken:           {401, fakenames.Unauthorized, "the Authorization header must be: Bearer, a space, and an API key", "the call has no Authorization header with one bearer token"},
	UnknownKey:        {401, fakenames.Unauthorized, "the API key is unknown or revoked", "this fake did not issue the API key of the call, or a reset has removed it"},
	RevokedKey:        {401, fakenames.Unauthorized, "the API key is unknown or revoked", ""},
	PaymentRequired:   {402, fakenames.PaymentRequired, "the plan of this API key is not active", "KEY is on a plan that is not active"},
	NotDashboard:      {403, fakenames.Forbidden, "BYOK requires a dashboard-issued API key", "KEY was not issued through the dashboard, which BYOK requires"},
	NoSuchAgent:       {404, fakenames.NotFound, "no agent of this API key has this identifier", "no agent has this identifier"},
	NoSuchPath:        {404, fakenames.NotFound, "no endpoint has this path", ""},
	NothingStored:     {404, fakenames.NotFound, "no provider key is stored for this API key", "no provider key is stored for KEY"},
	MethodNotAllowed:  {405, fakenames.MethodNotAllowed, "", ""},
	BYOKNotConfigured: {409, fakenames.BYOKNotConfigured, "byok needs a BYOK configuration, and none is set for this API key", "no BYOK configuration was ever set for KEY"},
	RateLimited:       {429, spec.RateLimited, "", ""},
	BYOKUnavailable:   {503, fakenames.BYOKUnavailable, "BYOK is not available, so no provider key can be used or stored", "the test has made the BYOK store unavailable"},
	Scripted:          {0, "", "", "a ReplyFunc answered with this status"},
	UnlistedStatus:    {500, "internal_server_error", "", ""},
}

// CodeOf returns the error identifier of the refusals with a status. All refusals with
// one status share an identifier.
func CodeOf(status int) string {
	for _, kind := range Kinds {
		if kind.Status == status {
			return kind.Code
		}
	}
	return ""
}

// Refusal is the decision not to carry out a call, and the facts that led to it. Package
// wire writes the sentences for the client and for the author of a test. The client gets
// Status, Code, Limit, Wait, Allow, and the reason that Field and Broken make. Everything
// below is for Call.Why.
type Refusal struct {
	Kind Kind
	// Status is the usual status of Kind, or the one that Behavior.statusOf chooses for the
	// endpoint. A script and an injected answer have their own. Status also decides what the
	// call spends.
	Status int
	// Code is the error member of the body. It says what happened, whatever the Status.
	Code string
	// Field is the member that a 400, 409 or 503 is about, such as llm.mode.
	Field string
	// Broken says in words, without a value of the call, which rule the call breaks. For a
	// refusal of a script it is the script's reason.
	Broken string
	// UnknownMember is the path of an unknown member of the object Field. Only a 400 has
	// one.
	UnknownMember string
	// Limit is the limit that a 429 names, and Wait its Retry-After, in seconds.
	Limit spec.LimitKey
	Wait  int
	// Allow are the methods that the path takes, for a 405.
	Allow string

	// Facts that the client does not see.
	Key    string     // the label of the call's key
	IP     netip.Addr // the address whose limit refuses, for a limit per address
	Owner  string     // the label of the key that the agent belongs to
	Since  time.Time  // when the key was revoked, or BYOK was cleared
	State  LimitState // of the limit that refuses
	Length int        // length of a text that is too long, in the unit of Behavior
	Max    int        // allowed length
}

// Refuse makes a refusal of a kind, with its usual status and error identifier. The
// caller adds the facts.
func Refuse(kind Kind) *Refusal {
	return &Refusal{Kind: kind, Status: Kinds[kind].Status, Code: Kinds[kind].Code}
}

// BadField returns a 400 about a member of the body. Neither argument may quote a value,
// which may be a key or a message.
func BadField(field, broken string) *Refusal {
	r := Refuse(BadRequest)
	r.Field, r.Broken = field, broken
	return r
}
