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
	if flaw := p.object("", e.Body); flaw != nil {
		return nil, flaw
	}
	return p.found, nil
}

type parser struct {
	strictjson.Scanner
	by    *service.Behavior
	open  bool // unknown members are accepted
	found service.Fields
}

func (p *parser) object(path string, fields []*spec.Field) *service.Refusal {
	seen := make([]bool, len(fields))
	for p.Enter(); p.More(); {
		name := p.Name()
		i := slices.IndexFunc(fields, func(f *spec.Field) bool {
			return f.Name() == name || p.by.OtherCase && strings.EqualFold(f.Name(), name)
		})
		switch {
		case i < 0 && p.open:
			if flaw := unfree("body", p.Free()); flaw != nil {
				return flaw
			}
			continue
		case i < 0:
			flaw := service.BadField(cmp.Or(path, "body"), "member "+memberName(name)+" is not allowed")
			flaw.UnknownMember = strings.TrimPrefix(path+"."+strings.Trim(memberName(name), `"`), ".")
			return flaw
		case seen[i] && !p.Duplicates:
			return service.BadField(fields[i].Path, "is there twice")
		case seen[i]: // the last one counts, also where the first was an object
			delete(p.found, fields[i])
			for _, inner := range fields[i].Fields {
				delete(p.found, inner)
			}
		}
		if p.by.NullMembers && p.Peek() == 'n' {
			p.Scalar()
			continue
		}
		seen[i] = true
		if flaw := p.value(fields[i]); flaw != nil {
			return flaw
		}
	}
	for i, field := range fields {
		if field.Required && !seen[i] {
			return service.BadField(field.Path, "is required")
		}
	}
	return nil
}

func (p *parser) value(f *spec.Field) *service.Refusal {
	switch first := p.Peek(); {
	case f.Kind == spec.String && first != '"':
		return service.BadField(f.Path, "must be a string")
	case f.Kind == spec.String:
		return p.text(f)
	case first != '{':
		return service.BadField(f.Path, "must be an object")
	case f.Kind == spec.Object:
		return p.object(f.Path, f.Fields)
	}
	from := p.Pos
	if flaw := unfree(f.Path, p.Free()); flaw != nil {
		return flaw
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, p.Data[from:p.Pos]) // Check has accepted it
	p.found[f] = compact.String()
	return nil
}

func (p *parser) text(f *spec.Field) *service.Refusal {
	s := p.Text()
	switch {
	case p.Torn:
		return service.BadField(f.Path, strictjson.ErrHalfPair.Error())
	case !f.Fits(s), p.by.LengthUnit != service.UnitPoints && f.MaxLen > 0 && p.by.Length(s) > f.MaxLen:
		flaw := service.BadField(f.Path, fmt.Sprintf("at most %d characters", f.MaxLen))
		flaw.Length, flaw.Max = p.by.Length(s), f.MaxLen
		return flaw
	case !f.Allows(s):
		return service.BadField(f.Path, "must be one of "+f.Values())
	}
	p.found[f] = s
	return nil
}

// unfree is the refusal of a value that Free did not accept.
func unfree(path string, err error) *service.Refusal {
	var twice strictjson.Twice
	switch {
	case err == nil:
		return nil
	case errors.As(err, &twice):
		return service.BadField(path, "member "+memberName(string(twice))+" is there twice")
	}
	return service.BadField(path, err.Error())
}

// memberName quotes a member's name. A name may be repeated, unlike a value,
// unless it may be a key in the wrong place.
func memberName(name string) string {
	if mask.MayBeKey(name) {
		return mask.Withheld
	}
	return strconv.Quote(printable.Name(name))
}
