package observe

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// Target is a service to ask.
type Target struct {
	// BaseURL is the address before /v1; a slash at its end does not matter.
	BaseURL string
	// Key is a dashboard-issued API key on an active plan. Nothing else should use it
	// meanwhile: other calls count in its limits, and can make answers about limits wrong.
	Key string
	// SecondKey is another such key, for the question that needs two keys. If it is empty,
	// Abilities issue a key. Without Abilities that question is not asked.
	SecondKey string
	// HTTPClient sends the calls. nil means a client with a timeout of two
	// minutes. Redirects are never followed, even if the client would.
	HTTPClient *http.Client
	// Abilities issue a second key and move the target's clock. If they are nil,
	// waits take real time.
	Abilities Abilities
}

// Abilities do things that calls cannot do, for tests of a service that allows them. A
// *fakeserver.Server has these methods; give it as Abilities even if the calls go through
// a proxy in front of it.
type Abilities interface {
	// IssueKeyOn issues and returns a new API key on one of the plans preview (the defaults
	// of interface 8.1), free, pro and byok (interface 8.2), dashboard-issued or not.
	IssueKeyOn(plan string, dashboard bool) string
	// RevokeKey revokes a key of IssueKeyOn: later calls with it are answered 401.
	RevokeKey(key string)
	// SetBYOKAvailable switches the store of provider keys off and on
	// (status 503 in interface 4.2 and 4.4).
	SetBYOKAvailable(available bool)
	// Advance moves the target's clock forward by d.
	Advance(d time.Duration)
}

// DefaultBudget returns the budget that Run uses if none is given: 490 requests, 24
// creations, no BYOK set, 8 warm-ups and 15 minutes of waiting. The requests and
// creations are less than half of what a preview key may take in a day (interface 8.1),
// and the time to wait is enough for all questions.
func DefaultBudget() Spend {
	return Spend{Requests: 490, Creations: 24, WarmUps: 8, Wait: 15 * time.Minute}
}

// Spend is the part of the limits in interface 8.1 that calls take, or may take.
type Spend struct {
	Requests  int           `json:"requests"`  // calls made, refused ones included
	Creations int           `json:"creations"` // agents created
	BYOKSets  int           `json:"byok_sets"` // provider keys stored, by PUT /v1/byok or at agent creation
	WarmUps   int           `json:"warm_ups"`  // warm-ups that went through
	Wait      time.Duration `json:"wait_ns"`   // waiting time; costs nothing if Abilities can move the target's clock
}

// part is a countable part of a Spend.
type part struct {
	name, unit string // its name in a flag, and in words
	n          *int
}

// parts returns the countable parts of s, which a caller may set.
func (s *Spend) parts() []part {
	return []part{
		{"requests", "request", &s.Requests}, {"creations", "creation", &s.Creations},
		{"byok", "BYOK set", &s.BYOKSets}, {"warmups", "warm-up", &s.WarmUps},
	}
}

// String returns the parts that are not zero in words: "3 requests, 1 creation".
func (s Spend) String() string { return cmp.Or(s.Over(Spend{}), "0 requests") }

// Set reads a list such as "requests=100,creations=5,byok=1,warmups=3,wait=1m". Parts
// that are not in the list keep their value. With Set, *Spend is a flag.Value. The error
// for a wrong list names the parts and the form of their values. After an error, s may
// have some values of the list.
func (s *Spend) Set(text string) error {
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(value)
		i := slices.IndexFunc(s.parts(), func(p part) bool { return p.name == name })
		switch {
		case name == "wait":
			s.Wait, err = time.ParseDuration(value)
		case i < 0:
			return errors.New("the parts are requests, creations, byok, warmups and wait")
		default:
			*s.parts()[i].n = n
		}
		if err != nil || n < 0 || s.Wait < 0 {
			return fmt.Errorf("%s: must be a whole number, and wait a duration such as 6m", name)
		}
	}
	return nil
}

// Over returns, in words, the parts of s that are larger than in left; "" if there are
// none.
func (s Spend) Over(left Spend) string {
	var words []string
	rest := left.parts()
	for i, p := range s.parts() {
		if *p.n > *rest[i].n {
			words = append(words, printable.Plural(*p.n, p.unit))
		}
	}
	if s.Wait > left.Wait {
		words = append(words, fmt.Sprint(s.Wait.Round(100*time.Millisecond), " of waiting"))
	}
	return strings.Join(words, ", ")
}

// Plus returns the sum of s and t, part by part.
func (s Spend) Plus(t Spend) Spend {
	return Spend{s.Requests + t.Requests, s.Creations + t.Creations, s.BYOKSets + t.BYOKSets, s.WarmUps + t.WarmUps, s.Wait + t.Wait}
}

// Minus returns s without t, part by part. A part that t exceeds is negative.
func (s Spend) Minus(t Spend) Spend {
	return Spend{s.Requests - t.Requests, s.Creations - t.Creations, s.BYOKSets - t.BYOKSets, s.WarmUps - t.WarmUps, s.Wait - t.Wait}
}
