package fakeserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// scanner steps through a JSON document and marks what Calls must not show.
type scanner struct {
	strictjson.Scanner
	hidden []hidden
}

func scanOf(doc []byte) scanner {
	return scanner{Scanner: strictjson.Scanner{Data: doc, Watch: isKeyName}}
}

// hidden is a part of the document that Calls replaces.
type hidden struct {
	strictjson.Span
	instead string
}

// free steps over any value, and hides the provider keys in it.
func (sc *scanner) free(path string) *failure {
	flaw := unfree(path, sc.Free())
	sc.hideKeys()
	return flaw
}

func (sc *scanner) hideKeys() {
	for _, key := range sc.Watched {
		sc.hide(key, `"`+redactedKey+`"`)
	}
	sc.Watched = nil
}

// unfree is the refusal of a value that Free did not accept.
func unfree(path string, err error) *failure {
	var twice strictjson.Twice
	switch {
	case err == nil:
		return nil
	case errors.As(err, &twice):
		return badRequest(path, "member "+memberName(string(twice))+" is there twice")
	}
	return badRequest(path, err.Error())
}

// hide marks a part, and drops the marks inside it.
func (sc *scanner) hide(part strictjson.Span, instead string) {
	n := len(sc.hidden)
	for n > 0 && sc.hidden[n-1].From >= part.From {
		n--
	}
	sc.hidden = append(sc.hidden[:n], hidden{part, instead})
}

func (sc *scanner) shown() string {
	size := len(sc.Data)
	for _, h := range sc.hidden {
		size += len(h.instead) - (h.To - h.From)
	}
	var b strings.Builder
	b.Grow(size) // exactly, since the record keeps it
	at := 0
	for _, h := range sc.hidden {
		b.Write(sc.Data[at:h.From])
		b.WriteString(h.instead)
		at = h.To
	}
	b.Write(sc.Data[at:])
	return b.String()
}

// legible is a body, JSON or not, as a record may hold it: with its structure,
// numbers and the values of members that hold neither words nor keys. Of other
// strings it says how long they are, unless texts may be shown. What looks like
// a key is never shown.
type legible struct {
	fields  []*spec.Field // whose values are shown
	texts   bool
	secrets []string
}

// pieces are the strings of a body, even one without its end, and the words
// outside of them.
var pieces = regexp.MustCompile(`"(?s:[^"\\]|\\.)*\\?"?|[^\s{}\[\]:,"]+`)

func (l legible) of(body []byte) string {
	var b strings.Builder
	member, at := "", 0
	for _, piece := range pieces.FindAllIndex(body, -1) {
		written, rest := body[piece[0]:piece[1]], body[piece[1]:]
		b.Write(body[at:piece[0]])
		at = piece[1]
		if written[0] != '"' {
			b.WriteString(l.word(strings.ToValidUTF8(string(written), "\ufffd")))
			continue
		}
		text := redact(unquoted(written), l.secrets)
		if isName := bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")); isName {
			member, text = text, l.name(text)
		} else {
			text = l.value(member, text)
		}
		shown := string(encode(text))
		if !bytes.HasSuffix(written[1:], []byte(`"`)) {
			shown = strings.TrimSuffix(shown, `"`) // the body ends inside the string
		}
		b.WriteString(shown)
	}
	b.Write(body[at:])
	return redact(b.String(), l.secrets)
}

// unquoted is a string as it reads.
func unquoted(written []byte) (text string) {
	if json.Unmarshal(written, &text) != nil {
		text = strings.ToValidUTF8(strings.TrimSuffix(string(written[1:]), `"`), "\ufffd")
	}
	return text
}

func (l legible) word(word string) string {
	_, err := strconv.ParseFloat(word, 64)
	if slices.Contains([]string{"true", "false", "null"}, word) || err == nil && len(word) <= maxScale {
		return word
	}
	return l.value("", word)
}

// maxScale is the length of the longest number that is shown.
const maxScale = 24

func (l legible) name(name string) string {
	if looksSecret(name) || mayBeKey(name) {
		return redactedKey
	}
	return printable.Name(name)
}

func (l legible) value(member, text string) string {
	lower := strings.ToLower(member)
	switch {
	case containsAny(lower, secretNames) && !strings.HasSuffix(lower, "_ref"), looksSecret(text), text == redactedKey:
		return redactedKey
	case l.texts, slices.ContainsFunc(l.fields, func(f *spec.Field) bool { return shows(f, member) }):
		return text
	}
	return redactedText(text)
}

// shows reports whether a field, or one inside it, has the name and a value that
// a record may hold.
func shows(f *spec.Field, member string) bool {
	if f.Kind == spec.Object {
		return slices.ContainsFunc(f.Fields, func(inner *spec.Field) bool { return shows(inner, member) })
	}
	return f.Name() == member && f != spec.SystemPrompt && f != spec.MessageText
}

// secretForms are what keys look like: known beginnings, or long runs of letters
// and digits.
var secretForms = regexp.MustCompile(`(?i)\b(sk|pk|amk|key|bearer)[-_ ][a-z0-9]|[a-z0-9_-]{24,}`)

func looksSecret(text string) bool {
	return slices.ContainsFunc(secretForms.FindAllString(text, -1), func(found string) bool {
		return len(found) < 24 || strings.ContainsAny(found, "0123456789")
	})
}

// replyFields are the members of answers whose texts a record may hold.
var replyFields = []*spec.Field{
	{Path: "error"}, {Path: "reason"}, {Path: "limit_key"}, {Path: "trace_id"}, {Path: "status"}, {Path: "agent_id"},
	{Path: "service"}, {Path: "version"}, {Path: "mode"}, {Path: "provider"},
}
