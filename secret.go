package agentmessaging

import "fmt"

// Secret is a string that does not show when it is printed: every verb of
// fmt, slog and encoders give "[redacted]" instead. Convert it with string(s)
// to read it. Kept in an unexported field of a struct of your own it does show
// when that struct is printed, since package fmt asks no methods there.
type Secret string

// String returns "[redacted]", or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString quotes String.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes String for every verb, %x and %d included.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		fmt.Fprint(f, s.GoString())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText returns String; the encoders of JSON, XML and slog use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
