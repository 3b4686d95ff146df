package control

import (
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// listFitting is GET fitting-faults: the faults that can happen to a call of an
// endpoint, to be made by their names.
func (s *Server) listFitting(r *request) (any, error) {
	name, is := r.given("endpoint")
	if !is {
		return nil, badRequest("endpoint", "is required")
	}
	if r.refuse("endpoint", checks["endpoint"](name)); r.flaw != nil {
		return nil, r.flaw
	}
	method, path, _ := strings.Cut(name, " ")
	all := faults.For(spec.Find(method, path))
	refused := func(f faults.Fault) bool { return f.Name == faults.Refused }
	return map[string]any{"faults": slices.DeleteFunc(all, refused)}, nil
}
