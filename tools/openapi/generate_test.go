package openapi_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/oapi-codegen/runtime" // what the clients import
	"github.com/stretchr/testify/require"
)

// TestClientsCanBeGenerated of both documents, and compile.
func TestClientsCanBeGenerated(t *testing.T) {
	for _, document := range []string{documentFile, controlFile} {
		client := filepath.Join(t.TempDir(), "client.gen.go")
		for _, step := range [][]string{
			{"tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", client, document},
			{"vet", client},
		} {
			out, err := exec.CommandContext(t.Context(), "go", step...).CombinedOutput()
			require.NoError(t, err, "%s: %s", document, out)
		}
	}
}
