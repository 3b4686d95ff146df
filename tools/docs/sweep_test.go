package docs_test

import (
	"fmt"
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
	source := ""
	for page, functions := range map[string][]string{
		"docs/sweep.md":  {"answer", "agentOf"},
		"docs/errors.md": {"later", "enableSMS"},
		"README.md":      {"askHandler"},
	} {
		for _, name := range functions {
			found := regexp.MustCompile(`(?ms)^func `+name+`\(.*?^}\n`).FindAllString(read(t, page), -1)
			require.NotEmpty(t, found, "%s has no %s", page, name)
			source += found[len(found)-1] // the mended one
		}
	}
	source += regexp.MustCompile(`(?ms)^type messenger .*?^}\n`).FindString(read(t, "README.md"))
	const folder = "tools/docs/testdata"
	absolute, err := filepath.Abs(folder)
	require.NoError(t, err)
	apps, overlay := filepath.Join(t.TempDir(), "apps.go"), filepath.Join(t.TempDir(), "overlay.json")
	write(t, apps, complete(source, ""))
	write(t, overlay, fmt.Sprintf(`{"Replace":{%q:%q}}`, filepath.Join(absolute, "apps.go"), apps))
	out, err := exec.Command("go", "test", "-overlay", overlay, "./"+folder).CombinedOutput()
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
