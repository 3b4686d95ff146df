package docs_test

import (
	"flag"
	"fmt"
	"go/format"
	"html"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/tools/docs/internal/pages"
)

var update = flag.Bool("update", false, "write the Go of the pages into internal/pages, and the picture of a sweep")

// ran are the pages whose tests run as they are, and of others the functions that
// are swept.
var ran = map[string][]string{
	"README.md": nil, "docs/design.md": nil, "docs/faults.md": nil, "docs/limits.md": nil, "docs/migration.md": nil, "docs/testing.md": nil,
	"docs/sweep.md":  {"answer", "agentOf", "replace"},
	"docs/errors.md": {"advice", "enableSMS"},
}

// TestPagesAreRun: the package that is run is the code of the pages.
func TestPagesAreRun(t *testing.T) {
	t.Chdir(root)
	source := ""
	for _, page := range slices.Sorted(maps.Keys(ran)) {
		code := blocks(t, page)
		for _, line := range slices.Sorted(maps.Keys(code)) {
			if ran[page] == nil && strings.Contains("\n"+code[line], "\nfunc Test") {
				source += code[line]
			}
		}
		mended, first := "", "" // of functions that the page shows twice, the last and the first
		for _, name := range ran[page] {
			found := regexp.MustCompile(`(?ms)^func `+name+`\(.*?^}\n`).FindAllString(read(t, page), -1)
			require.NotEmpty(t, found, "%s has no %s", page, name)
			mended, first = mended+found[len(found)-1], first+found[0]
		}
		source += mended
		if first != mended {
			source += regexp.MustCompile(`\b(`+strings.Join(ran[page], "|")+`)\(`).ReplaceAllStringFunc(first, func(name string) string {
				return "first" + strings.ToUpper(name[:1]) + name[1:]
			})
		}
	}
	source += "// Tests are the tests of the pages.\nvar Tests = []testing.InternalTest{\n"
	for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(source, -1) {
		source += fmt.Sprintf("{%q, %s},\n", test[1], test[1])
	}
	source += "}\n"
	head := "// Code generated from the pages by go test ./tools/docs -update. DO NOT EDIT.\n\npackage pages\n"
	for _, imported := range known {
		if strings.Contains(source, path.Base(imported)+".") || imported == module {
			head += "import " + strconv.Quote(imported) + "\n"
		}
	}
	formatted, err := format.Source([]byte(head + source))
	require.NoError(t, err)
	const file = "tools/docs/internal/pages/pages.gen.go"
	if *update {
		require.NoError(t, os.WriteFile(file, formatted, 0o644))
	}
	assert.True(t, read(t, file) == string(formatted), "%s is out of date; to rewrite it: go test ./tools/docs -update", file)
}

func TestThePagesTestsPass(t *testing.T) {
	for _, test := range pages.Tests {
		t.Run(test.Name, test.F)
	}
}

func TestApplicationsOfThePagesSurvive(t *testing.T) { pages.Survive(t) }

// The picture of the sweep shows what go test prints of its first bot.
func TestBotSurvives(t *testing.T) {
	if os.Getenv("SWEEP_THE_BOT") != "" {
		pages.SurviveNot(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestBotSurvives$")
	cmd.Env = append(os.Environ(), "SWEEP_THE_BOT=yes")
	printed, err := cmd.CombinedOutput()
	require.Error(t, err)
	t.Chdir(root)
	const file = "docs/pictures/sweep-report.svg"
	progress := regexp.MustCompile(`.* so far\n`) // on a slow machine
	picture := terminal(progress.ReplaceAllString(string(printed), ""))
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(picture), 0o644))
	}
	numbers := regexp.MustCompile(`[ 0-9.]+m?s?`) // times and line numbers, and how far times are indented
	assert.Equal(t, numbers.ReplaceAllString(picture, ""), numbers.ReplaceAllString(read(t, file), ""),
		"out of date; to draw it again: go test ./tools/docs -update")
}

// terminal draws the first finding and the last line of a sweep.
func terminal(printed string) string {
	first, _, _ := strings.Cut(printed[strings.Index(printed, "--- FAIL"):], "\n    --- FAIL: TestBotSurvives/CreateAgent_1/dies_answered")
	lines := strings.Split("$ go test\n"+first+"\n"+regexp.MustCompile(`.*swept.*`).FindString(printed), "\n")
	const lineHeight = 18
	svg := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 %d" font-family="monospace" font-size="13">`+
		`<rect width="100%%" height="100%%" rx="8" fill="#1c2128"/>`, lineHeight*(len(lines)+1))
	for i, line := range lines {
		colour := "#cdd9e5"
		switch {
		case strings.Contains(line, "--- FAIL"):
			colour = "#ff938a"
		case strings.Contains(line, "report.go") || strings.Contains(line, "doubled:"):
			colour = "#f0b72f"
		case strings.Contains(line, "again:"), strings.HasPrefix(line, "$"):
			colour = "#6cb6ff"
		}
		if runes := []rune(line); len(runes) > 116 {
			line = string(runes[:115]) + "…"
		}
		svg += fmt.Sprintf(`<text x="12" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n", lineHeight*(i+1)+4, colour, html.EscapeString(line))
	}
	return svg + "</svg>\n"
}

// The page of the sweep names every fault.
func TestSweepPageNamesEveryFault(t *testing.T) {
	t.Chdir(root)
	page := read(t, "docs/sweep.md")
	_, names := faults.Named("")
	for _, name := range append(names, "agent_gone", "fails") {
		assert.Contains(t, page, "`"+name+"`")
	}
}
