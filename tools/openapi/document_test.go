package openapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	documentFile = "../../openapi/openapi.yaml"
	controlFile  = "../../cmd/agentmessaging-fake/internal/control/openapi.yaml"
)

// document is openapi.yaml.
func document(t testing.TB) *openapi3.T { return load(t, documentFile) }

// load reads a document, which is valid, its examples included.
func load(t testing.TB, file string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(file)
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

// TestEveryCall: a bearer credential for each (interface 5), agent_id where the
// path holds it and no other parameter (4), Retry-After for 429 and no other
// header (7), and the version of the interface in each path (9).
func TestEveryCall(t *testing.T) {
	doc := document(t)
	assert.Equal(t, "v1", doc.Info.Version)
	assert.Equal(t, openapi3.SecurityRequirements{{"bearer": {}}}, doc.Security)
	scheme := doc.Components.SecuritySchemes["bearer"].Value
	assert.Equal(t, []string{"http", "bearer"}, []string{scheme.Type, scheme.Scheme})
	for _, op := range operations(doc) {
		assert.Nil(t, op.Security, "%s has a rule of its own", op.OperationID)
		assert.Regexp(t, `^/v1/`, op.path)
		assert.Empty(t, op.Parameters, op.OperationID)
		if assert.Len(t, op.item.Parameters, strings.Count(op.path, "{"), op.OperationID) && strings.Contains(op.path, "{") {
			p := op.item.Parameters[0].Value
			assert.Equal(t, "agent_id path true string", fmt.Sprint(p.Name, " ", p.In, " ", p.Required, " ", kind(p.Schema.Value)), op.OperationID)
		}
		if body := op.body(); body != nil { // interface 2.5 closes no object, 2.3, 4.2, 4.4 and 4.9 do
			want := map[bool]string{true: "object", false: "closed"}[op.OperationID == "SendMessage"]
			assert.Equal(t, want, kind(body), op.OperationID)
		}
		for status, res := range op.Responses.Map() {
			if status != "429" {
				assert.Empty(t, res.Value.Headers, "%s %s", op.OperationID, status)
				continue
			}
			require.Len(t, res.Value.Headers, 1, op.OperationID)
			header := res.Value.Headers["Retry-After"]
			require.NotNil(t, header, op.OperationID)
			// The example is for a mock server.
			assert.Equal(t, "true string 30", fmt.Sprint(header.Value.Required, " ", kind(header.Value.Schema.Value), " ", header.Value.Example), op.OperationID)
		}
	}
}

// TestProviderBesideKey: llm.api_key wants llm.provider (interface 2.3), which
// no table has a word for.
func TestProviderBesideKey(t *testing.T) {
	llm := document(t).Components.Schemas["AgentLlm"].Value
	assert.NoError(t, llm.VisitJSON(map[string]any{"api_key": "k", "provider": "openai"}, openapi3.EnableJSONSchema2020()))
	assert.NoError(t, llm.VisitJSON(map[string]any{"provider": "openai"}, openapi3.EnableJSONSchema2020()))
	assert.Error(t, llm.VisitJSON(map[string]any{"api_key": "k"}, openapi3.EnableJSONSchema2020()))
}
