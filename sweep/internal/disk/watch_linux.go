package disk

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// events are those of the kernel about a folder (inotify).
type events struct {
	fd      int
	dir     string
	folders map[int32]string // by the kernel's number of the watch
}

const asked = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_DELETE

// newEvents returns nil where the kernel has no more watches to give.
func newEvents() *events {
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	return &events{fd: fd}
}

// start drops what is known of another folder: what still comes from there has a number
// that is not in folders.
func (e *events) start(dir string) {
	if e == nil {
		return
	}
	e.dir, e.folders = dir, map[int32]string{}
	e.changes()
	e.add("")
}

func (e *events) add(folder string) {
	number, err := syscall.InotifyAddWatch(e.fd, filepath.Join(e.dir, folder), asked)
	if err != nil {
		return
	}
	e.folders[int32(number)] = folder
	inside, _ := os.ReadDir(filepath.Join(e.dir, folder))
	for _, entry := range inside {
		if entry.IsDir() {
			e.add(filepath.Join(folder, entry.Name()))
		}
	}
}

func (e *events) close() {
	if e != nil {
		_ = syscall.Close(e.fd)
	}
}

// changes returns what has happened since it was asked last, in order.
func (e *events) changes() []Change {
	var buffer [1 << 14]byte
	t := tape{events: e, moves: map[uint32]string{}}
	for {
		n, err := syscall.Read(e.fd, buffer[:])
		if n <= 0 || err != nil {
			return t.changes
		}
		for events := buffer[:n]; len(events) >= syscall.SizeofInotifyEvent; {
			end := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			t.take(events[:end])
			events = events[end:]
		}
	}
}

// tape turns the kernel's events into changes.
type tape struct {
	events  *events
	changes []Change
	moves   map[uint32]string // where an entry was that moves, by the kernel's cookie
}

func (t *tape) take(event []byte) {
	folder, known := t.events.folders[int32(binary.NativeEndian.Uint32(event))]
	if !known {
		return
	}
	mask, cookie := binary.NativeEndian.Uint32(event[4:]), binary.NativeEndian.Uint32(event[8:])
	path := filepath.Join(folder, strings.TrimRight(string(event[syscall.SizeofInotifyEvent:]), "\x00"))
	switch {
	case mask&syscall.IN_CREATE != 0:
		t.add(Change{Created, path, ""})
		if mask&syscall.IN_ISDIR != 0 {
			t.events.add(path)
		}
	case mask&syscall.IN_MODIFY != 0:
		t.written(path)
	case mask&syscall.IN_MOVED_FROM != 0:
		t.moves[cookie] = path
	case mask&syscall.IN_MOVED_TO != 0:
		t.add(Change{Moved, path, t.moves[cookie]})
	case mask&syscall.IN_DELETE != 0:
		t.add(Change{Removed, path, ""})
	}
}

func (t *tape) add(c Change) { t.changes = append(t.changes, c) }

// written joins the parts of one write.
func (t *tape) written(path string) {
	last := len(t.changes) - 1
	if last < 0 || t.changes[last] != (Change{Written, path, ""}) {
		t.add(Change{Written, path, ""})
	}
}
