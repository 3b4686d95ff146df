package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
)

// ran are the pages whose tests run as they are, and the applications of the
// others, which testdata/survive_test.go sweeps.
var ran = map[string][]string{
	"README.md": nil, "docs/design.md": nil, "docs/faults.md": nil, "docs/migration.md": nil, "docs/testing.md": nil,
	"docs/sweep.md":  {"answer", "agentOf", "replace"},
	"docs/errors.md": {"advice", "enableSMS"},
}

// TestApplicationsOfThePagesSurvive every fault, and the tests of the pages pass:
// an overlay adds both to the package in testdata.
func TestApplicationsOfThePagesSurvive(t *testing.T) {
	t.Chdir(root)
	source := ""
	for page, functions := range ran {
		for _, block := range blocks(t, page) {
			if functions == nil && strings.Contains("\n"+block, "\nfunc Test") {
				source += block
			}
		}
		for _, name := range functions {
			found := regexp.MustCompile(`(?ms)^func `+name+`\(.*?^}\n`).FindAllString(read(t, page), -1)
			require.NotEmpty(t, found, "%s has no %s", page, name)
			source += found[len(found)-1] // the mended one
		}
	}
	head := "package block\n"
	for _, imported := range known {
		if strings.Contains(source, path.Base(imported)+".") || imported == module {
			head += "import " + strconv.Quote(imported) + "\n"
		}
	}
	apps, overlay, folder := filepath.Join(t.TempDir(), "pages_test.go"), filepath.Join(t.TempDir(), "overlay.json"), "tools/docs/testdata"
	absolute, err := filepath.Abs(folder)
	require.NoError(t, err)
	replaced := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(absolute, "pages_test.go"), apps)
	require.NoError(t, os.WriteFile(apps, []byte(head+source), 0o600))
	require.NoError(t, os.WriteFile(overlay, []byte(replaced), 0o600))
	out, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "./"+folder).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// The page of the sweep names every fault.
func TestSweepPageNamesEveryFault(t *testing.T) {
	t.Chdir(root)
	page := read(t, "docs/sweep.md")
	_, names := faults.Named("")
	for _, name := range append(names, "key_revoked", "plan_ended", "byok_down", "agent_gone", "fails") {
		assert.Contains(t, page, "`"+name+"`")
	}
}
