package pacer

import "context"

// Priority orders calls that wait in a [Pacer]. The zero value is
// PriorityInteractive.
type Priority int

const (
	// PriorityInteractive is for calls that a person waits for. It is the default.
	PriorityInteractive Priority = 0
	// PriorityBatch is for calls that can wait: interactive calls go first. But every
	// eighth permit goes to a waiting batch call, so that batch calls do not starve.
	PriorityBatch Priority = 1
)

type priorityKey struct{}

// WithPriority returns a context under which calls have the given priority. Without
// it, calls have PriorityInteractive.
func WithPriority(ctx context.Context, priority Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, priority)
}

type tenantKey struct{}

// WithTenant returns a context under which calls belong to a tenant, such as one of
// your customers. The tenants of a process take turns among calls of the same priority.
// So a tenant with a thousand waiting calls does not delay a tenant with a single call.
// Without WithTenant, calls belong to the tenant "".
func WithTenant(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, tenantKey{}, id)
}
