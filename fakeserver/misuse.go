package fakeserver

import (
	"context"
	"fmt"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// maxShown bounds each part of a message that comes from a test or a call, in bytes.
const maxShown = 100

// quoteName quotes a name that a test or a call gave, shortened and on one line.
func quoteName(name string) string { return strconv.Quote(printable.Name(name)) }

// misuse panics because the author of a test passed a wrong argument: the method's
// name, and a sentence that says what is allowed. The control interface of
// agentmessaging-fake makes a 400 of it.
func misuse(method, format string, args ...any) {
	panic("fakeserver: " + method + ": " + fmt.Sprintf(format, args...))
}

// checkContext panics for a nil context.
func checkContext(method string, ctx context.Context) {
	if ctx == nil {
		misuse(method, "the context is nil")
	}
}
