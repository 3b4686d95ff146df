package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
)

// validator says of requests and replies whether they are as the document has
// them.
type validator struct {
	router  routers.Router
	options *openapi3filter.Options
}

func newValidator(t testing.TB) *validator {
	t.Helper()
	doc := document(t)
	doc.Servers = nil // any address will do
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &validator{router, &openapi3filter.Options{
		IncludeResponseStatus:             true,
		RejectWhenRequestBodyNotSpecified: true,
		SkipSettingDefaults:               true,
		AuthenticationFunc:                bearer,
	}}
}

// credential is RFC 6750's: the scheme in any case, one space, one token.
var credential = regexp.MustCompile(`^(?i:bearer) [A-Za-z0-9\-._~+/]+=*$`)

// bearer looks at the form of the credential; whose key it is, a document
// cannot say.
func bearer(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	if !credential.MatchString(in.RequestValidationInput.Request.Header.Get("Authorization")) {
		return errors.New("no bearer credential")
	}
	return nil
}

// exchange is a request and its reply.
type exchange struct {
	req      *http.Request
	sent     []byte
	status   int
	header   http.Header
	received []byte
}

// verdict is what the document says of an exchange.
type verdict struct {
	operation       string // "" where the document has none
	request, answer error
}

func (v *validator) judge(x exchange) verdict {
	req := x.req.Clone(context.Background())
	req.Body = http.NoBody
	if len(x.sent) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(x.sent))
	}
	route, params, err := v.router.FindRoute(req)
	if err != nil {
		return verdict{request: err}
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: v.options}
	return verdict{
		operation: route.Operation.OperationID,
		request:   openapi3filter.ValidateRequest(req.Context(), in),
		answer:    v.answer(in, x),
	}
}

func (v *validator) answer(in *openapi3filter.RequestValidationInput, x exchange) error {
	res := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: x.status, Header: x.header, Options: v.options,
	}
	return openapi3filter.ValidateResponse(context.Background(), res.SetBodyBytes(x.received))
}

// fits reports what is wrong with a JSON value by the schema.
func fits(t *testing.T, schema *openapi3.Schema, value string) error {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(value), &v), value)
	return schema.VisitJSON(v, openapi3.EnableJSONSchema2020())
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
