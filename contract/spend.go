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

// String names the requests and the parts that are not zero: "3 requests, 1
// creation".
func (s Spend) String() string {
	parts := []string{counted(s.Requests, "request")}
	for _, p := range []struct {
		n    int
		what string
	}{{s.Creations, "creation"}, {s.BYOKSets, "BYOK set"}, {s.WarmUps, "warm-up"}} {
		if p.n != 0 {
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

// over says which parts of s are more than what is left.
func (s Spend) over(left Spend) string {
	var parts []string
	for _, p := range []struct {
		n, left int
		what    string
	}{
		{s.Requests, left.Requests, "request"}, {s.Creations, left.Creations, "creation"},
		{s.BYOKSets, left.BYOKSets, "BYOK set"}, {s.WarmUps, left.WarmUps, "warm-up"},
	} {
		if p.n > p.left {
			parts = append(parts, fmt.Sprintf("%s of %d left", counted(p.n, p.what), max(0, p.left)))
		}
	}
	if s.Wait > left.Wait {
		parts = append(parts, fmt.Sprintf("%v of waiting of %v left", s.Wait, left.Wait))
	}
	return strings.Join(parts, ", ")
}

// within reports whether s spends no more than budget in any part.
func (s Spend) within(budget Spend) bool {
	return s.Requests <= budget.Requests && s.Creations <= budget.Creations &&
		s.BYOKSets <= budget.BYOKSets && s.WarmUps <= budget.WarmUps && s.Wait <= budget.Wait
}

// cost is what one call spends that was answered with status. Only an
// operation that went through takes of its own limits, as far as the
// interface shows.
func cost(e endpoint, body string, status int) Spend {
	spent := Spend{Requests: 1}
	if status != http.StatusOK {
		return spent
	}
	switch e.name {
	case createAgent.name:
		spent.Creations = 1
		if strings.Contains(body, `"api_key"`) {
			spent.BYOKSets = 1
		}
	case setBYOK.name:
		spent.BYOKSets = 1
	case warmUp.name:
		spent.WarmUps = 1
	}
	return spent
}
