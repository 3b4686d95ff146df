package fakeserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// misuse panics because the author of a test passed a wrong argument.
func misuse(method, format string, args ...any) {
	panic("fakeserver: " + method + ": " + fmt.Sprintf(format, args...))
}

// kept bounds a part of the request's first line, and lets go of the memory of
// the rest, which may hold a query of a megabyte.
func kept(part string) string { return strings.Clone(mask.Clip(part, maxRecorded)) }

// memberName quotes a member's name. A name may be repeated, unlike a value,
// unless it may be a key in the wrong place.
func memberName(name string) string {
	if mask.MayBeKey(name) {
		return mask.Withheld
	}
	return quoteName(name)
}

// quoteName quotes a foreign name.
func quoteName(name string) string { return strconv.Quote(printable.Name(name)) }

// maxShown bounds each foreign part of a sentence, in bytes.
const maxShown = 100

// digest identifies an API key without its text, so that the fake's state shows
// no key.
type digest [sha256.Size]byte

func digestOf(key string) digest { return sha256.Sum256([]byte(key)) }

const keyKind = "amk_fake"

// keyText is the text of the n-th key of fakes without WithKey. It is computed
// and never stored.
func keyText(n int) string { return numbered(keyKind, n) }

// numbered is kind, an underscore, and n in at least six digits.
func numbered(kind string, n int) string {
	digits := strconv.Itoa(n)
	return kind + "_" + "000000"[min(len(digits), 6):] + digits
}

// labelOf computes the label from the text of a key that a fake issued. Any
// other text may be a real key, and is not shown.
func labelOf(key string) string {
	if n := numberOf(keyKind, key); n > 0 {
		return numbered("key", n)
	}
	return mask.Withheld
}

// numberOf is the n of which numbered makes the text; 0 if none does.
func numberOf(kind, text string) int {
	digits, _ := strings.CutPrefix(text, kind+"_")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || numbered(kind, n) != text {
		return 0
	}
	return n
}

// maxRecorded bounds the foreign parts of a record that have no other bound:
// method, path and agent.
const maxRecorded = 256

// encode writes one of the fake's structs, or a string, as JSON.
func encode(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // the fake's own structs can all be written
	}
	return b
}

// wireTime is RFC 3339 in UTC.
func wireTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
