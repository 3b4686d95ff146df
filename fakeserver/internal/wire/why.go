package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Why says in one sentence why a call was refused, with the numbers that the
// author of a test needs. A client never sees it.
func Why(r *service.Refusal, now time.Time) string {
	return fmt.Sprintf("%d: %s.", r.Status, why(r, now))
}

func why(r *service.Refusal, now time.Time) string {
	switch r.Kind {
	case service.BadRequest:
		if r.Max > 0 {
			return fmt.Sprintf("%s has %s characters, %s are allowed", r.Field, thousands(r.Length), thousands(r.Max))
		}
	case service.NoToken:
		return "the call has no Authorization header with one bearer token"
	case service.UnknownKey:
		return "this fake did not issue the API key of the call"
	case service.RevokedKey:
		return r.Key + " was revoked " + ago(now, r.Since)
	case service.PaymentRequired:
		return r.Key + " is on a plan that is not active"
	case service.NotDashboard:
		return r.Key + " was not issued through the dashboard, which BYOK requires"
	case service.NoSuchAgent:
		if r.Owner != "" {
			return "the agent belongs to " + r.Owner
		}
		return "no agent has this identifier"
	case service.NothingStored:
		return "no provider key is stored for " + r.Key
	case service.BYOKNotConfigured:
		if !r.Since.IsZero() {
			return "the BYOK configuration of " + r.Key + " was cleared " + ago(now, r.Since)
		}
		return "no BYOK configuration was ever set for " + r.Key
	case service.RateLimited:
		return limited(r, now)
	case service.BYOKUnavailable:
		return "the BYOK store is not available, by SetBYOKAvailable(false)"
	case service.Scripted:
		return "a ReplyFunc answered with this status"
	}
	return Reason(r)
}

func limited(r *service.Refusal, now time.Time) string {
	who := r.Key
	if r.IP.IsValid() {
		who = r.IP.String()
	}
	opens := "it opens in " + r.State.Opens.Sub(now).Round(time.Millisecond).String()
	if r.State.Used < r.State.Max {
		return fmt.Sprintf("Exhaust closed %s for %s; %s", r.Limit, r.Key, opens)
	}
	l, what := spec.Limits[spec.LimitIndex(r.Limit)], ""
	if l.Counts != spec.Requests {
		what = " " + string(l.Counts)
	}
	return fmt.Sprintf("%s has spent %s of %s%s in this %s; %s", who, thousands(r.State.Used), thousands(r.State.Max), what, window(l.Window), opens)
}

func window(d time.Duration) string {
	switch d {
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	}
	return "day"
}

func ago(now, at time.Time) string { return now.Sub(at).Round(time.Millisecond).String() + " ago" }

// thousands is a number with commas, such as 4,001.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Why says in one sentence what the fault did to a call, with what became of the
// call, which may be a message, itself. body is how long the whole answer is.
func (f *Fault) Why(message bool, decided, body int) string {
	effect := "the call had no effect"
	switch {
	case f.Phase == BeforeConnecting:
		return f.Name + " refused the connection: nothing was sent."
	case f.Phase == OnTheReply && decided == 200 && message:
		effect = "the agent has the message"
	case f.Phase == OnTheReply && decided >= 200 && decided < 300:
		effect = "the call had its effect"
	case f.Phase == OnTheReply:
		effect = "the service had refused it with " + strconv.Itoa(decided)
	}
	var did string
	switch d := f.Delivery; {
	case f.Canned != nil && f.Phase == OnTheReply:
		did = "replaced the answer"
	case f.Canned != nil:
		did = "answered in place of the service"
	case d.Sent == memnet.Nothing && d.Ends == memnet.Hangs:
		did = "never answered"
	case d.Sent == memnet.Nothing:
		did = "ended the connection without an answer"
	case d.Drip > 0:
		did = fmt.Sprintf("sent %d bytes at a time, with %v in between", d.Drip, d.Every)
	case d.Ends == memnet.Leaves:
		did = "answered, and then took no other call on the connection"
	case d.Sent < body:
		did = fmt.Sprintf("cut the answer after %d of %d bytes", d.Sent, body)
	default:
		return ""
	}
	return strings.Join([]string{f.Name, did + "; " + effect + "."}, " ")
}

// WhyLeft says when the client left, and whether the service had the call by then.
func WhyLeft(after time.Duration, reached bool) string {
	if !reached {
		return fmt.Sprintf("The client left after %v, before the call reached the service: it had no effect.", after.Round(time.Millisecond))
	}
	return fmt.Sprintf("The client left after %v, before it had the answer.", after.Round(time.Millisecond))
}
