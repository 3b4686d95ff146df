package agentmessaging

import "context"

// Priority orders calls that wait in a [Pacer].
type Priority int

const (
	// PriorityInteractive is for calls that a person waits for; the default.
	PriorityInteractive Priority = iota
	// PriorityBatch is for calls that can wait: interactive ones go first. So
	// that batch calls do not starve, of eight permits one goes to those that
	// wait in the same process for the same limits; those of other processes
	// and limits get their turn after a minute.
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
