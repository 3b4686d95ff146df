// Package disk copies the content of a folder at one moment. It also works out the
// content that a process would leave if it died in the middle of its writes.
//
// A killed process loses nothing of a write that had returned. So a death can leave one change
// unfinished: a file that is written in place can be missing, empty or cut in half. Changes
// before it are complete, and changes after it have not begun. If the old content is the
// beginning of the new content, only the added part is cut. A file that a database keeps open
// and writes into is not cut: its first half is new, and the rest is old. A file that is moved
// into place is never cut.
package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Image is the content of a folder: entries by their paths below the folder.
type Image map[string]Entry

// Entry is a file, a folder or a symbolic link.
type Entry struct {
	Mode    fs.FileMode
	Content string // the content of a file, or the target of a link with rootPlaceholder for the folder of the Image
}

// rootPlaceholder replaces the folder in the target of a link, so that a link into the
// folder leads into the copy. No path contains it.
const rootPlaceholder = "\x00"

// ReadImage copies the folder.
func ReadImage(dir string) Image {
	image := Image{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return nil // the entry was removed just now
		}
		below, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return nil
		}
		switch mode := info.Mode(); {
		case mode.IsRegular():
			content, _ := os.ReadFile(path)
			image[below] = Entry{mode, string(content)}
		case mode&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			image[below] = Entry{mode, strings.Replace(target, dir, rootPlaceholder, 1)}
		case mode.IsDir():
			image[below] = Entry{Mode: mode}
		} // a socket or a pipe ends with its process
		return nil
	})
	return image
}

// Restore writes the image into an empty folder.
func (i Image) Restore(dir string) error {
	var failed error
	for _, path := range i.paths() { // a folder comes before its entries
		e, into := i[path], filepath.Join(dir, path)
		switch {
		case e.Mode.IsDir():
			failed = errors.Join(failed, os.Mkdir(into, e.Mode.Perm()|0o700))
		case e.Mode&fs.ModeSymlink != 0:
			failed = errors.Join(failed, os.Symlink(strings.Replace(e.Content, rootPlaceholder, dir, 1), into))
		default:
			failed = errors.Join(failed, os.WriteFile(into, []byte(e.Content), e.Mode.Perm()))
		}
	}
	return failed
}

func (i Image) paths() []string { return slices.Sorted(maps.Keys(i)) }

// String returns every path and content, so two images with the same string are equal. It
// does not quote the content, because a folder may be large.
func (i Image) String() string {
	var b strings.Builder
	for _, path := range i.paths() {
		fmt.Fprintf(&b, "%q %v %d %s\n", path, i[path].Mode, len(i[path].Content), i[path].Content)
	}
	return b.String()
}

// A Watch copies a folder repeatedly; Start chooses the folder. It copies the whole folder,
// because the kernel does not report all changes. Only one goroutine at a time may use a
// Watch.
type Watch struct {
	Missed bool // some torn states are unknown, because the changes that led to them are

	dir string
	events
}

// Update copies the folder, and returns the states that a death in the middle of the
// changes since the last copy would leave. If the changes are unknown, or a file is written
// meanwhile, Update returns no states and sets Missed. With onlyReported, Update copies
// nothing if the kernel reports no change: an application may log a thousand lines.
func (w *Watch) Update(last Image, onlyReported bool) (Image, []State) {
	changes := w.changes()
	if onlyReported && len(changes) == 0 && len(w.folders) > 0 {
		return last, nil
	}
	image := ReadImage(w.dir)
	if len(w.changes()) > 0 {
		image, changes = ReadImage(w.dir), nil
	}
	states, explained := torn(last, image, changes)
	w.Missed = w.Missed || !explained
	return image, states
}

// A Change is one thing that happened to an entry.
type Change struct {
	Kind   Kind
	Path   string
	From   string // the old path of a Moved entry
	Opened bool   // a Written file was opened, and not read since, so its old content may be cut off
}

// Kind says what happened to an entry.
type Kind int

// The kinds of changes.
const (
	Created Kind = iota
	Written      // in place
	Moved
	Removed
)

// A State is a content of the folder that a process can leave if it dies between two
// moments.
type State struct {
	Image       Image
	Description string // such as "agent.id was cut in half"
}

// torn returns the states between two images; none if the changes do not explain how one
// image became the other. A file that was created and removed between the two images is
// not explained, because its content is unknown.
func torn(before, after Image, changes []Change) (states []State, explained bool) {
	now := Image{}
	maps.Copy(now, before)
	for n, c := range changes {
		add := func(how string) { states = append(states, State{maps.Clone(now), c.Path + " was " + how}) }
		whole, known := content(after, changes[n:], c.Path)
		switch c.Kind {
		case Created:
			add("missing")
			now[c.Path] = whole
			if whole.Mode&fs.ModeSymlink == 0 { // a link is complete at once; a file is empty at first
				now[c.Path] = Entry{Mode: cmp.Or(whole.Mode, 0o600)}
			}
		case Written:
			if !known || slices.Contains(changes[n+1:], c) { // after a second write, the content of the first is unknown
				return nil, false
			}
			for _, part := range partlyWritten(now[c.Path].Content, whole.Content, c.Opened) {
				now[c.Path] = Entry{whole.Mode, part.content}
				add(part.how)
			}
			now[c.Path] = whole
		case Moved:
			if _, there := now[c.From]; !there { // the move can be seen before the kernel reports it
				return nil, false
			}
			add("not yet in place")
			now[c.Path] = now[c.From]
			delete(now, c.From)
		case Removed:
			add("not yet removed")
			delete(now, c.Path)
		}
	}
	if !maps.Equal(now, after) {
		return nil, false
	}
	return states, true
}

// part is a content that a file can have in the middle of a write, and words for it.
type part struct{ how, content string }

// partlyWritten returns the contents that a file can have in the middle of a write. cutOff says
// that the old content may be cut off before the write.
func partlyWritten(old, content string, cutOff bool) []part {
	if added, appended := strings.CutPrefix(content, old); appended && old != "" {
		return []part{{"cut in half", old + added[:len(added)/2]}}
	}
	if cutOff || old == "" || len(content) < len(old) { // a write alone makes no file shorter
		return []part{{"empty", ""}, {"cut in half", content[:len(content)/2]}}
	}
	half := len(content) / 2
	return []part{{"half overwritten", content[:half] + old[min(half, len(old)):]}}
}

// content returns the content of a file after the changes, which may move the file.
func content(after Image, changes []Change, path string) (Entry, bool) {
	for _, c := range changes {
		switch {
		case c.Kind == Moved && c.From == path:
			path = c.Path
		case c.Path == path && (c.Kind == Removed || c.Kind == Moved):
			return Entry{}, false
		}
	}
	e, found := after[path]
	return e, found
}
