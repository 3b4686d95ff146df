package fakeserver

import (
	"fmt"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// maxShown bounds each foreign part of a sentence, in bytes.
const maxShown = 100

// quoteName quotes a foreign name.
func quoteName(name string) string { return strconv.Quote(printable.Name(name)) }

// misuse panics because the author of a test passed a wrong argument.
func misuse(method, format string, args ...any) {
	panic("fakeserver: " + method + ": " + fmt.Sprintf(format, args...))
}
