package agentmessaging

import "context"

// Priority orders calls that wait in a [Pacer].
type Priority int

const (
	// PriorityInteractive is for calls that a person waits for; the default.
	PriorityInteractive Priority = iota
	// PriorityBatch is for calls that can wait: interactive ones go first,
	// but for one permit in eight, so that batch calls wait and do not starve.
	PriorityBatch
)

type priorityKey struct{}

// WithPriority returns a context under which calls have the given priority.
func WithPriority(ctx context.Context, priority Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, priority)
}

func priorityOf(ctx context.Context) Priority {
	priority, _ := ctx.Value(priorityKey{}).(Priority)
	return priority
}
