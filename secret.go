package agentmessaging

import (
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

// Secret is a string that does not show when it is printed: fmt, slog and
// encoders write "[redacted]" instead. Convert it with string(s) to read it. A Secret that
// was encoded as text or JSON and decoded is "[redacted]", which the client refuses as a
// key; gob does not decode it.
//
// A Secret is readable where its methods are not called: under the verb %p, under %w of
// fmt.Errorf (go vet complains), as a key of a map that is encoded as JSON, in printers
// that use reflection, such as cmp.Diff, and in a printed struct that has it in an
// unexported field.
type Secret string

// String returns "[redacted]", or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redact.Redacted
}

// GoString returns String in quotes.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes String for every verb, %x and %d included. Package fmt does not call it
// for %p and %w.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		fmt.Fprint(f, s.GoString())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText returns String. The encoders of JSON, XML and slog call it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalBinary returns String. encoding/gob calls it.
func (s Secret) MarshalBinary() ([]byte, error) { return s.MarshalText() }
