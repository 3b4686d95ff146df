package fakeserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// parseBody checks a body against the endpoint's fields.
func (c *choices) parseBody(e *spec.Endpoint, header http.Header, raw []byte) (members, *failure) {
	if len(raw) == 0 && e.BodyOptional { // a Content-Type says nothing about no body
		return nil, nil
	}
	if f := c.checkEncoding(header); f != nil {
		return nil, f
	}
	if c.behindBody {
		raw = firstDocument(raw)
	}
	p := parser{
		Scanner: strictjson.Scanner{Data: raw}, choices: c,
		open: c.unknownMembers && e == spec.SendMessage, found: make(members, 0, 4), // few calls have more
	}
	p.Duplicates = c.duplicateMembers
	if f := p.document(e.Body); f != nil {
		return nil, f
	}
	return p.found, nil
}

func firstDocument(raw []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if decoder.Decode(new(json.RawMessage)) != nil {
		return raw
	}
	return raw[:decoder.InputOffset()]
}

type parser struct {
	strictjson.Scanner
	*choices
	open  bool // unknown members are accepted
	found members
}

func (p *parser) document(fields []*spec.Field) *failure {
	if err := strictjson.Check(p.Data); err != nil {
		return badRequest("body", err.Error())
	}
	if p.Peek() != '{' {
		return badRequest("body", "must be a JSON object")
	}
	return p.object("", fields)
}

func (p *parser) object(path string, fields []*spec.Field) *failure {
	seen := make([]bool, len(fields))
	for p.Enter(); p.More(); {
		name := p.Name()
		i := p.indexField(fields, name)
		switch {
		case i < 0 && p.open:
			if f := unfree("body", p.FreeMember(name)); f != nil {
				return f
			}
			continue
		case i < 0:
			return notAllowed(path, name)
		case seen[i] && !p.Duplicates:
			return badRequest(fields[i].Path, "is there twice")
		case seen[i]:
			p.forget(fields[i]) // the last one counts
		}
		if p.nullMembers && p.Peek() == 'n' {
			p.Scalar()
			continue
		}
		seen[i] = true
		if f := p.value(fields[i]); f != nil {
			return f
		}
	}
	return missing(fields, seen)
}

func missing(fields []*spec.Field, seen []bool) *failure {
	for i, field := range fields {
		if field.Required && !seen[i] {
			return badRequest(field.Path, "is required")
		}
	}
	return nil
}

func notAllowed(path, name string) *failure {
	f := badRequest(cmp.Or(path, "body"), "member "+memberName(name)+" is not allowed")
	f.member = strings.TrimPrefix(path+"."+strings.Trim(memberName(name), `"`), ".")
	return f
}

// forget drops a member that was found before, with those inside it.
func (p *parser) forget(f *spec.Field) {
	p.found = slices.DeleteFunc(p.found, func(m member) bool { return m.field == f || slices.Contains(f.Fields, m.field) })
}

// indexField compares names exactly, unless another case is accepted: Text is
// not text.
func (p *parser) indexField(fields []*spec.Field, name string) int {
	return slices.IndexFunc(fields, func(f *spec.Field) bool {
		return f.Name() == name || p.otherCase && strings.EqualFold(f.Name(), name)
	})
}

func (p *parser) value(f *spec.Field) *failure {
	first, isString := p.Peek(), f.Kind == spec.String
	switch {
	case isString && first != '"':
		return badRequest(f.Path, "must be a string")
	case isString:
		return p.string(f)
	case first != '{':
		return badRequest(f.Path, "must be an object")
	case f.Kind == spec.Object:
		return p.object(f.Path, f.Fields)
	default:
		return p.metadata(f)
	}
}

func (p *parser) string(f *spec.Field) *failure {
	s := p.Text()
	switch {
	case p.Torn:
		return badRequest(f.Path, strictjson.ErrHalfPair.Error())
	case !p.fits(f, s):
		return badRequest(f.Path, fmt.Sprintf("at most %d characters", f.MaxLen))
	case !f.Allows(s):
		return badRequest(f.Path, "must be one of "+f.Values())
	}
	p.found = append(p.found, member{f, s})
	return nil
}

func (p *parser) metadata(f *spec.Field) *failure {
	from := p.Pos
	if flaw := unfree(f.Path, p.Free()); flaw != nil {
		return flaw
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, p.Data[from:p.Pos]) // Check has accepted it
	p.found = append(p.found, member{f, compact.String()})
	return nil
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
