package contract

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Spend is what cases take of the limits in interface 8.1.
type Spend struct {
	Requests  int           `json:"requests"`  // calls sent, refused ones included
	Creations int           `json:"creations"` // agents created
	BYOKSets  int           `json:"byok_sets"` // provider keys stored, by PUT /v1/byok or at agent creation
	WarmUps   int           `json:"warm_ups"`  // warm-ups that went through
	Wait      time.Duration `json:"wait_ns"`   // time that must pass; free where the target's clock can be moved
}

// defaultBudget is the budget of a shared target that states none.
var defaultBudget = Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}

// String names the parts that are not zero: "3 requests, 1 creation".
func (s Spend) String() string { return cmp.Or(s.beyond(Spend{}, false), "0 requests") }

// over says which parts of s are more than what is left; "" where none is.
func (s Spend) over(left Spend) string { return s.beyond(left, true) }

func (s Spend) beyond(left Spend, telling bool) string {
	var parts []string
	add := func(more bool, part string, left any) {
		if more && telling {
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

func (s Spend) plus(t Spend) Spend {
	return Spend{
		Requests:  s.Requests + t.Requests,
		Creations: s.Creations + t.Creations,
		BYOKSets:  s.BYOKSets + t.BYOKSets,
		WarmUps:   s.WarmUps + t.WarmUps,
		Wait:      s.Wait + t.Wait,
	}
}

func (s Spend) minus(t Spend) Spend {
	return s.plus(Spend{-t.Requests, -t.Creations, -t.BYOKSets, -t.WarmUps, -t.Wait})
}

// cost is what one call spends that was answered with status. Only an
// operation that went through takes of its own limits, as far as the
// interface shows.
func cost(e endpoint, status int) Spend {
	spent := Spend{Requests: 1}
	switch {
	case status != http.StatusOK:
	case e.name == warmUp.name:
		spent.WarmUps = 1
	case e.name == setBYOK.name:
		spent.BYOKSets = 1
	case e.name == createAgent.name:
		spent.Creations = 1
		spent.BYOKSets = strings.Count(e.body, `"api_key"`)
	}
	return spent
}
