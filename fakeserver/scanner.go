package fakeserver

import (
	"errors"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// scanner steps through a JSON document and marks what Calls must not show.
type scanner struct {
	strictjson.Scanner
	hidden []span
}

func scanOf(doc []byte) scanner { return scanner{Scanner: strictjson.Scanner{Data: doc}} }

// span is a part of the document that Calls replaces.
type span struct {
	from, to int
	instead  string
}

// free steps over any value, and hides the provider keys in it.
func (sc *scanner) free(path string) *failure {
	sc.Passed = sc.hideKey
	return unfree(path, sc.Free())
}

// unfree is the refusal of a value that Free did not accept.
func unfree(path string, err error) *failure {
	var twice strictjson.Twice
	switch {
	case err == nil:
		return nil
	case errors.As(err, &twice):
		return badRequest(path, "member "+memberName(string(twice))+" stands twice")
	}
	return badRequest(path, err.Error())
}

func (sc *scanner) hideKey(name string, from int) {
	if isKeyName(name) {
		sc.hide(from, `"`+redactedKey+`"`)
	}
}

// hide marks everything since from, and drops the marks inside it.
func (sc *scanner) hide(from int, instead string) {
	n := len(sc.hidden)
	for n > 0 && sc.hidden[n-1].from >= from {
		n--
	}
	sc.hidden = append(sc.hidden[:n], span{from, sc.Pos, instead})
}

// shown is the document with its hidden spans replaced.
func (sc *scanner) shown() string {
	size := len(sc.Data)
	for _, h := range sc.hidden {
		size += len(h.instead) - (h.to - h.from)
	}
	var b strings.Builder
	b.Grow(size) // exactly, since the record keeps it
	at := 0
	for _, h := range sc.hidden {
		b.Write(sc.Data[at:h.from])
		b.WriteString(h.instead)
		at = h.to
	}
	b.Write(sc.Data[at:])
	return b.String()
}
