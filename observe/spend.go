package observe

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Spend is what calls take of the limits in interface 8.1.
type Spend struct {
	Requests  int           `json:"requests"`  // calls sent, refused ones included
	Creations int           `json:"creations"` // agents created
	BYOKSets  int           `json:"byok_sets"` // provider keys stored, by PUT /v1/byok or at agent creation
	WarmUps   int           `json:"warm_ups"`  // warm-ups that went through
	Wait      time.Duration `json:"wait_ns"`   // time that must pass; free where the target's clock can be moved
}

// String names the parts that are not zero: "3 requests, 1 creation".
func (s Spend) String() string { return cmp.Or(s.beyond(Spend{}, false), "0 requests") }

// Set reads parts such as "requests=100,creations=5,byok=1,warmups=3,wait=1m";
// the others stay. It makes *Spend a flag.Value.
func (s *Spend) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		parts := map[string]*int{"requests": &s.Requests, "creations": &s.Creations, "byok": &s.BYOKSets, "warmups": &s.WarmUps}
		n, err := strconv.Atoi(value)
		switch into := parts[name]; {
		case name == "wait":
			s.Wait, err = time.ParseDuration(value)
		case into == nil:
			return errors.New("the parts are requests, creations, byok, warmups and wait")
		default:
			*into = n
		}
		if err != nil || n < 0 || s.Wait < 0 {
			return fmt.Errorf("%s: must be a whole number, and wait a duration such as 6m", name)
		}
	}
	return nil
}

// Over says which parts of s are more than what is left; "" where none is.
func (s Spend) Over(left Spend) string { return s.beyond(left, true) }

func (s Spend) beyond(left Spend, naming bool) string {
	var parts []string
	add := func(more bool, part string, left any) {
		if more && naming {
			part += fmt.Sprintf(" of %v left", left)
		}
		if more {
			parts = append(parts, part)
		}
	}
	add(s.Requests > left.Requests, counted(s.Requests, "request"), max(0, left.Requests))
	add(s.Creations > left.Creations, counted(s.Creations, "creation"), max(0, left.Creations))
	add(s.BYOKSets > left.BYOKSets, counted(s.BYOKSets, "BYOK set"), max(0, left.BYOKSets))
	add(s.WarmUps > left.WarmUps, counted(s.WarmUps, "warm-up"), max(0, left.WarmUps))
	add(s.Wait > left.Wait, fmt.Sprint(s.Wait, " of waiting"), max(0, left.Wait))
	return strings.Join(parts, ", ")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// Plus adds both up.
func (s Spend) Plus(t Spend) Spend {
	return Spend{
		Requests:  s.Requests + t.Requests,
		Creations: s.Creations + t.Creations,
		BYOKSets:  s.BYOKSets + t.BYOKSets,
		WarmUps:   s.WarmUps + t.WarmUps,
		Wait:      s.Wait + t.Wait,
	}
}

// Minus is what is left of s after t.
func (s Spend) Minus(t Spend) Spend {
	return s.Plus(Spend{-t.Requests, -t.Creations, -t.BYOKSets, -t.WarmUps, -t.Wait})
}
