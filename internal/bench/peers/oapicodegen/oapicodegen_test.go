package oapicodegen

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGenerated: the client here is the one of the module openapi, whose tests
// make it anew and hold it against the document.
func TestGenerated(t *testing.T) {
	here, err := os.ReadFile("internal/client/client.gen.go")
	require.NoError(t, err)
	there, err := os.ReadFile("../../../openapi/client/client.gen.go")
	require.NoError(t, err)
	assert.True(t, string(here) == string(there),
		"the generated client is not that of openapi/; run go generate in both, with one version of oapi-codegen")
}
