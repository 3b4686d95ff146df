package contract

import (
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

// part is one of the counts of a Spend.
type part struct {
	n    int
	what string
}

func (s Spend) parts() []part {
	return []part{{s.Requests, "request"}, {s.Creations, "creation"}, {s.BYOKSets, "BYOK set"}, {s.WarmUps, "warm-up"}}
}

// String names the requests and the parts that are not zero: "3 requests, 1
// creation".
func (s Spend) String() string {
	var parts []string
	for i, p := range s.parts() {
		if p.n != 0 || i == 0 {
			parts = append(parts, counted(p.n, p.what))
		}
	}
	if s.Wait != 0 {
		parts = append(parts, fmt.Sprint(s.Wait, " of waiting"))
	}
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

// over says which parts of s are more than what is left; "" where none is.
func (s Spend) over(left Spend) string {
	var parts []string
	for i, p := range s.parts() {
		if l := left.parts()[i].n; p.n > l {
			parts = append(parts, fmt.Sprintf("%s of %d left", counted(p.n, p.what), max(0, l)))
		}
	}
	if s.Wait > left.Wait {
		parts = append(parts, fmt.Sprintf("%v of waiting of %v left", s.Wait, max(0, left.Wait)))
	}
	return strings.Join(parts, ", ")
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
