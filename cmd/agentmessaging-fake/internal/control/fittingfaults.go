package control

import (
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/catalog"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// fittingFault is a fault of the catalog, to be made by its name.
type fittingFault struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// listFitting is GET fitting-faults: the faults that can happen to a call of an
// endpoint.
func (w *world) listFitting(r *request) (any, error) {
	name, is := r.given("endpoint")
	if !is {
		return nil, badRequest("endpoint", "is required")
	}
	if r.refuse("endpoint", checks["endpoint"](name)); r.flaw != nil {
		return nil, r.flaw
	}
	method, path, _ := strings.Cut(name, " ")
	fitting := []fittingFault{}
	for _, f := range catalog.For(spec.Find(method, path)) {
		if f.Name != catalog.Refused {
			fitting = append(fitting, fittingFault{f.Name, f.Says})
		}
	}
	return map[string]any{"faults": fitting}, nil
}
