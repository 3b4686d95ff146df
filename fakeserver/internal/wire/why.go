package wire

import (
	"cmp"
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
	ago := " " + now.Sub(r.Since).Round(time.Millisecond).String() + " ago"
	switch {
	case r.Max > 0:
		return fmt.Sprintf("%s has %s characters, %s are allowed", r.Field, thousands(r.Length), thousands(r.Max))
	case r.Owner != "":
		return "the agent belongs to " + r.Owner
	case r.Kind == service.RevokedKey:
		return r.Key + " was revoked" + ago
	case r.Kind == service.BYOKNotConfigured && !r.Since.IsZero():
		return "the BYOK configuration of " + r.Key + " was cleared" + ago
	case r.Kind == service.RateLimited:
		return limited(r, now)
	}
	return cmp.Or(strings.ReplaceAll(service.Kinds[r.Kind].Why, "KEY", r.Key), Reason(r))
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
	window := map[time.Duration]string{time.Minute: "minute", time.Hour: "hour", spec.Day: "day"}[l.Window]
	if l.Counts != spec.Requests {
		what = " " + string(l.Counts)
	}
	return fmt.Sprintf("%s has spent %s of %s%s in this %s; %s", who, thousands(r.State.Used), thousands(r.State.Max), what, window, opens)
}

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
