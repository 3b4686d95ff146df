package sweep_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

func TestAnImageIsPutBackAsItWas(t *testing.T) {
	from, into := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(from, "a", "b"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(from, "a", "b", "file"), []byte("x"), 0o640))
	require.NoError(t, os.Symlink("a/b/file", filepath.Join(from, "link")))
	image := disk.Look(from)
	require.NoError(t, image.Put(into))
	assert.Equal(t, image, disk.Look(into))
	require.NoError(t, os.WriteFile(filepath.Join(into, "a", "b", "file"), []byte("y"), 0o640))
	assert.NotEqual(t, image.String(), disk.Look(into).String())
}

// What a process can leave that dies in the middle of its writes.
func TestTornStates(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says in which order files change")
	}
	watch := disk.NewWatch()
	defer watch.Close()
	for name, tt := range map[string]struct {
		write func(t *testing.T, file, other string)
		want  []string
	}{
		"a new file": {func(t *testing.T, file, _ string) { write(t, file, "abcd") },
			[]string{"", `new=""`, `new="ab"`}},
		"a file that is rewritten": {func(t *testing.T, _, other string) { write(t, other, "one two") },
			[]string{`old=""`, `old="one"`}},
		"a file that is appended to": {func(t *testing.T, _, other string) {
			f, err := os.OpenFile(other, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString("three\n")
			require.NoError(t, errors.Join(err, f.Close()))
		},
			[]string{`old="one\nthr"`}},
		"a file that is moved into place": {func(t *testing.T, file, other string) {
			write(t, file, "ab")
			require.NoError(t, os.Rename(file, other))
		}, []string{`old="one\n"`, `new="" old="one\n"`, `new="a" old="one\n"`, `new="ab" old="one\n"`}},
		"two files in their order": {func(t *testing.T, file, other string) {
			write(t, other, "xy")
			write(t, file, "ab")
		}, []string{`old=""`, `old="x"`, `old="xy"`, `new="" old="xy"`, `new="a" old="xy"`}},
		"a file that comes and goes": {func(t *testing.T, file, other string) {
			write(t, file, "ab")
			write(t, other, "xy")
			require.NoError(t, os.Remove(file))
		}, nil},
		"a link that is moved into place": {func(t *testing.T, file, other string) {
			require.NoError(t, os.Symlink("ab", file))
			require.NoError(t, os.Rename(file, other))
		}, []string{`old="one\n"`, `new="ab" old="one\n"`}},
		"a removal": {func(t *testing.T, _, other string) { require.NoError(t, os.Remove(other)) }, []string{`old="one\n"`}},
		"nothing":   {func(*testing.T, string, string) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, other := filepath.Join(dir, "new"), filepath.Join(dir, "old")
			write(t, other, "one\n")
			if name == "a new file" {
				require.NoError(t, os.Remove(other))
			}
			before := disk.Look(dir)
			watch.Start(dir)
			tt.write(t, file, other)
			after, changes := watch.Take(before)
			assert.Equal(t, disk.Look(dir), after)
			var got []string
			for _, s := range disk.Torn(before, after, changes) {
				got = append(got, heldBy(s.Image))
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func write(t *testing.T, file, content string) {
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
}

func heldBy(image disk.Image) string {
	var all []string
	for _, path := range []string{"new", "old"} {
		if e, found := image[path]; found {
			all = append(all, fmt.Sprintf("%s=%q", path, e.Content))
		}
	}
	return strings.Join(all, " ")
}
