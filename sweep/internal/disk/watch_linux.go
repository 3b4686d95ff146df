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
	fd      int // -1: the kernel has no more watches to give
	dir     string
	folders map[int32]string // by the kernel's number of the watch
}

const asked = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_DELETE

func newEvents() events {
	fd, _ := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	return events{fd: fd}
}

func (e *events) close() { _ = syscall.Close(e.fd) }

// start drops what is known of another folder: what still comes from there has a number
// that is not in folders.
func (e *events) start(dir string) {
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

// changes returns what has happened since it was asked last, in order, if the kernel tells.
// The parts of one write are one change.
func (e *events) changes() (all []Change, known bool) {
	var buffer [1 << 14]byte
	moves := map[uint32]string{} // where an entry was that moves, by the kernel's cookie
	for {
		n, err := syscall.Read(e.fd, buffer[:])
		if n <= 0 || err != nil {
			return all, e.fd >= 0
		}
		for events := buffer[:n]; len(events) >= syscall.SizeofInotifyEvent; {
			end := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			if c, known := e.change(events[:end], moves); known && (len(all) == 0 || all[len(all)-1] != c) {
				all = append(all, c)
			}
			events = events[end:]
		}
	}
}

// change returns what one event of the kernel means.
func (e *events) change(event []byte, moves map[uint32]string) (c Change, known bool) {
	folder, known := e.folders[int32(binary.NativeEndian.Uint32(event))]
	mask, cookie := binary.NativeEndian.Uint32(event[4:]), binary.NativeEndian.Uint32(event[8:])
	path := filepath.Join(folder, strings.TrimRight(string(event[syscall.SizeofInotifyEvent:]), "\x00"))
	switch {
	case !known:
	case mask&syscall.IN_CREATE != 0:
		if mask&syscall.IN_ISDIR != 0 {
			e.add(path)
		}
		return Change{Created, path, ""}, true
	case mask&syscall.IN_MODIFY != 0:
		return Change{Written, path, ""}, true
	case mask&syscall.IN_MOVED_FROM != 0:
		moves[cookie] = path
	case mask&syscall.IN_MOVED_TO != 0:
		return Change{Moved, path, moves[cookie]}, true
	case mask&syscall.IN_DELETE != 0:
		return Change{Removed, path, ""}, true
	}
	return Change{}, false
}
