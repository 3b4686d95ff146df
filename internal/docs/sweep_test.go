package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/catalog"
)

// The applications of the pages survive every fault: testdata/survive_test.go
// sweeps them.
func TestApplicationsOfThePagesSurvive(t *testing.T) {
	t.Chdir(root)
	dir, source := newConsumer(t, "."), ""
	for page, functions := range map[string][]string{
		"docs/sweep.md":   {"answer", "agentOf"},
		"docs/errors.md":  {"later", "enableSMS"},
		"docs/testing.md": {"ask"},
	} {
		for _, name := range functions {
			found := regexp.MustCompile(`(?ms)^func `+name+`\(.*?^}\n`).FindAllString(read(t, page), -1)
			require.NotEmpty(t, found, "%s has no %s", page, name)
			source += found[len(found)-1] // the mended one
		}
	}
	source += regexp.MustCompile(`(?ms)^type messenger .*?^}\n`).FindString(read(t, "docs/testing.md"))
	write(t, filepath.Join(dir, "survive", "apps.go"), complete(source, ""))
	write(t, filepath.Join(dir, "survive", "survive_test.go"), read(t, "internal/docs/testdata/survive_test.go"))
	test := exec.Command("go", "test", "./survive")
	test.Dir = dir
	out, err := test.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// The page of the sweep names every fault.
func TestSweepPageNamesEveryFault(t *testing.T) {
	t.Chdir(root)
	page := read(t, "docs/sweep.md")
	_, names := catalog.Named("")
	for _, name := range append(names, "key_revoked", "plan_ended", "byok_down", "agent_gone", "fails") {
		assert.Contains(t, page, "`"+name+"`")
	}
}
