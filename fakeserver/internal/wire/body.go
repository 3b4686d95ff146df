package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Parse checks a body against the fields of its endpoint: interface 2.3 to 2.5,
// 4 and 8.4. By the fake's own decisions it is one JSON object with exactly these
// names, none twice and none null, in valid UTF-8.
func Parse(by *service.Behavior, e *spec.Endpoint, header http.Header, raw []byte) (service.Fields, *service.Refusal) {
	if len(raw) == 0 && e.BodyOptional { // a Content-Type says nothing about no body
		return nil, nil
	}
	// Both headers may be left out.
	for _, coding := range header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return nil, service.BadField("Content-Encoding", "only identity is accepted")
		}
	}
	for _, value := range header["Content-Type"] {
		if !by.ContentType && value != "application/json" && !strictjson.IsType(value) {
			return nil, service.BadField("Content-Type", "must be application/json, in UTF-8")
		}
	}
	if by.BehindBody {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		if decoder.Decode(new(json.RawMessage)) == nil {
			raw = raw[:decoder.InputOffset()]
		}
	}
	p := parser{
		Scanner: strictjson.Scanner{Data: raw, Duplicates: by.DuplicateMembers}, by: by,
		open: by.UnknownMembers && e == spec.SendMessage, found: make(service.Fields, 4), // few calls have more
	}
	if err := strictjson.Check(raw); err != nil {
		return nil, service.BadField("body", err.Error())
	}
	if p.Peek() != '{' {
		return nil, service.BadField("body", "must be a JSON object")
	}
	if p.object("", e.Body); p.flaw != nil {
		return nil, p.flaw
	}
	return p.found, nil
}

// parser reads a body until its first flaw.
type parser struct {
	strictjson.Scanner
	by    *service.Behavior
	open  bool // unknown members are accepted
	found service.Fields
	flaw  *service.Refusal
}

func (p *parser) refuse(path, broken string) { p.flaw = service.BadField(path, broken) }

func (p *parser) object(path string, fields []*spec.Field) {
	seen := make([]bool, len(fields))
	for p.Enter(); p.flaw == nil && p.More(); {
		name := p.Name()
		i := slices.IndexFunc(fields, func(f *spec.Field) bool {
			return f.Name() == name || p.by.OtherCase && strings.EqualFold(f.Name(), name)
		})
		switch {
		case i < 0 && p.open:
			p.free("body")
		case i < 0:
			p.refuse(cmp.Or(path, "body"), "member "+memberName(name)+" is not allowed")
			p.flaw.UnknownMember = strings.TrimPrefix(path+"."+strings.Trim(memberName(name), `"`), ".")
		case seen[i] && !p.Duplicates:
			p.refuse(fields[i].Path, "is there twice")
		default:
			seen[i] = p.value(fields[i])
		}
	}
	for i, field := range fields {
		if p.flaw == nil && field.Required && !seen[i] {
			p.refuse(field.Path, "is required")
		}
	}
}

// value reads a value, and reports whether there is one: null may count as none. Of
// a member that is there twice the last one counts, also where the first was an
// object.
func (p *parser) value(f *spec.Field) (given bool) {
	delete(p.found, f)
	for _, inner := range f.Fields {
		delete(p.found, inner)
	}
	switch first := p.Peek(); {
	case first == 'n' && p.by.NullMembers:
		p.Scalar()
		return false
	case f.Kind == spec.String && first != '"':
		p.refuse(f.Path, "must be a string")
	case f.Kind == spec.String:
		p.text(f)
	case first != '{':
		p.refuse(f.Path, "must be an object")
	case f.Kind == spec.Object:
		p.object(f.Path, f.Fields)
	default:
		var compact bytes.Buffer
		_ = json.Compact(&compact, p.free(f.Path)) // Check has accepted it
		p.found[f] = compact.String()
	}
	return true
}

func (p *parser) text(f *spec.Field) {
	s := p.Text()
	switch {
	case p.Torn:
		p.refuse(f.Path, strictjson.ErrHalfPair.Error())
	case !f.Fits(s), p.by.LengthUnit != service.UnitPoints && f.MaxLen > 0 && p.by.Length(s) > f.MaxLen:
		p.refuse(f.Path, fmt.Sprintf("at most %d characters", f.MaxLen))
		p.flaw.Length, p.flaw.Max = p.by.Length(s), f.MaxLen
	case !f.Allows(s):
		p.refuse(f.Path, "must be one of "+f.Values())
	default:
		p.found[f] = s
	}
}

// free reads any value, and returns it as it was written.
func (p *parser) free(path string) []byte {
	var twice strictjson.Twice
	from := p.Pos
	switch err := p.Free(); {
	case errors.As(err, &twice):
		p.refuse(path, "member "+memberName(string(twice))+" is there twice")
	case err != nil:
		p.refuse(path, err.Error())
	}
	return p.Data[from:p.Pos]
}

// memberName quotes a member's name. A name may be repeated, unlike a value,
// unless it may be a key in the wrong place.
func memberName(name string) string {
	if mask.MayBeKey(name) {
		return mask.Withheld
	}
	return strconv.Quote(printable.Name(name))
}
