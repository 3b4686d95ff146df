package agentmessaging_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDependencies: who may import whom, and what else a user compiles.
func TestDependencies(t *testing.T) {
	const (
		module   = "github.com/agent-messaging-service/agentmessaging-go"
		retrying = "github.com/hashicorp/go-retryablehttp github.com/hashicorp/go-cleanhttp"
	)
	rules := map[string]struct {
		banned []string // of this module; "" is the root
		others string   // that are allowed beyond the standard library; *: all
	}{
		module:                    {[]string{"/fakeserver", "/contract", "/pacer"}, retrying},
		module + "/pacer":         {[]string{"/fakeserver", "/contract"}, retrying},
		module + "/fakeserver":    {[]string{"", "/contract"}, ""},
		module + "/contract":      {[]string{"", "/fakeserver", "/internal/spec"}, "*"},
		module + "/internal/spec": {[]string{""}, ""},
	}
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`)
	list.Args = append(list.Args, slices.Collect(maps.Keys(rules))...)
	out, err := list.CombinedOutput()
	require.NoError(t, err, string(out))
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		rule := rules[deps[0]]
		for _, dep := range deps[1:] {
			within, ours := strings.CutPrefix(dep, module)
			first, _, _ := strings.Cut(dep, "/")
			assert.False(t, ours && slices.Contains(rule.banned, within), "%s imports %s", deps[0], dep)
			assert.True(t, ours || !strings.Contains(first, ".") || rule.others == "*" || slices.Contains(strings.Fields(rule.others), dep), "%s imports %s", deps[0], dep)
		}
	}
}
