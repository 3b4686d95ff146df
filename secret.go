package agentmessaging

import (
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

// Secret is a string that does not show when it is printed: fmt, slog and
// encoders give "[redacted]" instead. Convert it with string(s) to read it. One that was
// encoded and read again is "[redacted]" too, which is refused as a key.
//
// It does show where nobody asks its methods: as the verb %p, as %w of fmt.Errorf, which
// go vet refuses, as a key of a map that is written as JSON, to printers that go by
// reflection, such as cmp.Diff, and in an unexported field of a struct of your own that
// is printed.
type Secret string

// String returns "[redacted]", or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redact.Redacted
}

// GoString quotes String.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes String for every verb, %x and %d included, but %p and %w, for which
// package fmt does not ask.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		fmt.Fprint(f, s.GoString())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText returns String; the encoders of JSON, XML and slog use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalBinary returns String; encoding/gob uses it.
func (s Secret) MarshalBinary() ([]byte, error) { return s.MarshalText() }
