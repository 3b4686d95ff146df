package openapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const documentFile = "../../openapi.yaml"

// document is openapi.yaml, which is valid, its examples included.
func document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(documentFile)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	return doc
}

// operation is one of the document, with where it stands.
type operation struct {
	*openapi3.Operation
	method, path string
	item         *openapi3.PathItem
}

func operations(doc *openapi3.T) []operation {
	var all []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{op, method, path, item})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// body is the schema of the request's body; nil where it takes none.
func (op operation) body() *openapi3.Schema {
	if op.RequestBody == nil {
		return nil
	}
	return jsonSchema(op.RequestBody.Value.Content)
}

// jsonSchema is the schema of the only media type there is.
func jsonSchema(content openapi3.Content) *openapi3.Schema {
	media := content["application/json"]
	if len(content) != 1 || media == nil || media.Schema == nil {
		return nil
	}
	return media.Schema.Value
}

// TestEveryCallIsAuthenticated: interface 5.
func TestEveryCallIsAuthenticated(t *testing.T) {
	doc := document(t)
	assert.Equal(t, openapi3.SecurityRequirements{{"bearer": {}}}, doc.Security)
	scheme := doc.Components.SecuritySchemes["bearer"].Value
	assert.Equal(t, []string{"http", "bearer"}, []string{scheme.Type, scheme.Scheme})
	for _, op := range operations(doc) {
		assert.Nil(t, op.Security, "%s has a rule of its own", op.OperationID)
	}
}

// TestParameters: agent_id where the path holds it (interface 4), and no other
// parameter anywhere.
func TestParameters(t *testing.T) {
	for _, op := range operations(document(t)) {
		assert.Empty(t, op.Parameters, op.OperationID)
		if !strings.Contains(op.path, "{agent_id}") {
			assert.Empty(t, op.item.Parameters, op.OperationID)
			continue
		}
		require.Len(t, op.item.Parameters, 1, op.OperationID)
		p := op.item.Parameters[0].Value
		assert.Equal(t, []string{"agent_id", "path"}, []string{p.Name, p.In}, op.OperationID)
		assert.True(t, p.Required, op.OperationID)
		assert.Equal(t, `{"type":"string"}`, asJSON(t, p.Schema.Value), op.OperationID)
	}
}

// TestRetryAfter: interface 7 gives the header to 429, and no header to any
// other status.
func TestRetryAfter(t *testing.T) {
	for _, op := range operations(document(t)) {
		for status, res := range op.Responses.Map() {
			if status != "429" {
				assert.Empty(t, res.Value.Headers, "%s %s", op.OperationID, status)
				continue
			}
			require.Len(t, res.Value.Headers, 1, op.OperationID)
			header := res.Value.Headers["Retry-After"]
			require.NotNil(t, header, op.OperationID)
			assert.True(t, header.Value.Required, op.OperationID)
			assert.Equal(t, "30", header.Value.Example, op.OperationID) // for a mock server
			assert.Equal(t, `{"type":"string"}`, asJSON(t, header.Value.Schema.Value), op.OperationID)
		}
	}
}

// TestDefaults: interface 2.3 and 4.2 give three, and no other member has one.
func TestDefaults(t *testing.T) {
	got := map[string]any{}
	for _, op := range operations(document(t)) {
		defaults(op.OperationID, op.body(), got)
	}
	assert.Equal(t, map[string]any{
		"WarmUp.mode": "hosted", "CreateAgent.llm.mode": "hosted", "CreateAgent.llm.tier": "fast",
	}, got)
}

func defaults(at string, schema *openapi3.Schema, into map[string]any) {
	if schema == nil {
		return
	}
	if schema.Default != nil {
		into[at] = schema.Default
	}
	for name, member := range schema.Properties {
		defaults(at+"."+name, member.Value, into)
	}
}

// TestVersion: the version of the interface is that of its paths (interface 9).
func TestVersion(t *testing.T) {
	doc := document(t)
	assert.Equal(t, "v1", doc.Info.Version)
	for _, op := range operations(doc) {
		assert.Regexp(t, `^/v1/`, op.path)
		assert.Contains(t, []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, op.method)
	}
}
