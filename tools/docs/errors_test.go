package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const errorsPage = "docs/errors.md"

// kindsByName are all kinds; a test holds them to kinds.go.
var kindsByName = map[string]error{
	"ErrBadRequest":      agentmessaging.ErrBadRequest,
	"ErrUnauthorized":    agentmessaging.ErrUnauthorized,
	"ErrPaymentRequired": agentmessaging.ErrPaymentRequired,
	"ErrForbidden":       agentmessaging.ErrForbidden,
	"ErrNotFound":        agentmessaging.ErrNotFound,
	"ErrConflict":        agentmessaging.ErrConflict,
	"ErrRateLimited":     agentmessaging.ErrRateLimited,
	"ErrUnavailable":     agentmessaging.ErrUnavailable,
	"ErrServer":          agentmessaging.ErrServer,
	"ErrOutcomeUnknown":  agentmessaging.ErrOutcomeUnknown,
	"ErrInvalid":         agentmessaging.ErrInvalid,
}

// TestDocsErrorKinds: README and the page say something about each kind, and
// README the right status.
func TestDocsErrorKinds(t *testing.T) {
	t.Chdir(root)
	page, readme := read(t, errorsPage), read(t, "README.md")
	declared := regexp.MustCompile(`(?m)^\t(Err\w+)\s+= errors\.New`).FindAllStringSubmatch(read(t, "kinds.go"), -1)
	assert.Len(t, declared, len(kindsByName))
	for _, found := range declared {
		assert.Contains(t, kindsByName, found[1])
		assert.Contains(t, page, code(found[1]))
		assert.Contains(t, readme, "\n| "+code(found[1])+" |")
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Err\\w+)` \\| (\\d+) ").FindAllStringSubmatch(readme, -1) {
		status, err := strconv.Atoi(row[2])
		require.NoError(t, err)
		assert.ErrorIs(t, &agentmessaging.Error{StatusCode: status}, kindsByName[row[1]], row[0])
	}
}

// TestDocsErrorStatuses holds the statuses, their kinds and the methods that
// may meet them to the code.
func TestDocsErrorStatuses(t *testing.T) {
	t.Chdir(root)
	listed := map[int][]string{}
	for _, e := range spec.Endpoints {
		for _, status := range e.Errors {
			listed[status] = append(listed[status], code(e.Name))
		}
	}
	for _, cells := range tableRows(t, errorsPage, "statuses") {
		status, err := strconv.Atoi(cells[0])
		require.NoError(t, err)
		kind := kindsByName[strings.Trim(cells[1], "`")]
		assert.ErrorIs(t, &agentmessaging.Error{StatusCode: status}, kind, cells[0])
		methods := strings.Join(listed[status], ", ")
		if len(listed[status]) == len(spec.Endpoints) {
			methods = "all"
		}
		assert.Equal(t, methods, cells[2], "the methods that list %d", status)
		delete(listed, status)
	}
	assert.Empty(t, listed, "statuses that %s does not explain", errorsPage)
}

// TestDocsErrorMethods: each status of each method is explained, once.
func TestDocsErrorMethods(t *testing.T) {
	t.Chdir(root)
	var want, got []string
	for _, e := range spec.Endpoints {
		statuses := slices.Clone(e.Errors)
		slices.Sort(statuses)
		for _, status := range statuses {
			if status != 401 && status != 402 { // the same everywhere, as the page says
				want = append(want, fmt.Sprintf("%s %d", code(e.Name), status))
			}
		}
	}
	for _, cells := range tableRows(t, errorsPage, "methods") {
		got = append(got, cells[0]+" "+cells[1])
	}
	assert.Equal(t, want, got)
}

// tableRows are the cells of a table between markers, without its head.
func tableRows(t *testing.T, file, name string) (rows [][]string) {
	t.Helper()
	_, table, _ := cut(t, read(t, file), name)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2, "table %s of %s", name, file)
	return rows[2:]
}
