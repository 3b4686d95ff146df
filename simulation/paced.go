package simulation

import (
	"context"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// paced is the Pacer with a coordinator for the fleet.
var paced = policy{
	name: "Pacer",
	limiter: func(w *world, process int) agentmessaging.Limiter {
		return w.newPacer(agentmessaging.WithCoordinator(link{w.processes[process], w.coordinator}))
	},
}

// alone is the Pacer of a process that has the key for itself.
var alone = policy{
	name:    "Pacer, alone",
	limiter: func(w *world, _ int) agentmessaging.Limiter { return w.newPacer() },
}

var policies = []policy{naive, gated, divided, paced}

func (w *world) newPacer(opts ...agentmessaging.PacerOption) *agentmessaging.Pacer {
	pacer, err := agentmessaging.NewPacer(pacerLimits(w.limits), opts...)
	if err != nil {
		panic(err)
	}
	return pacer
}

func pacerLimits(limits []limit) []agentmessaging.Limit {
	var told []agentmessaging.Limit
	for _, l := range limits {
		counts := agentmessaging.CountsRequests
		if l.only == createAgent.Path {
			counts = agentmessaging.CountsAgentCreations
		}
		told = append(told, agentmessaging.Limit{Key: l.key, Max: l.max, Window: l.window, Counts: counts})
	}
	return told
}

// prioritized is what the callers of a class ask under.
func prioritized(ctx context.Context, c class) context.Context {
	if c == batch {
		return agentmessaging.WithPriority(ctx, agentmessaging.PriorityBatch)
	}
	return ctx
}
