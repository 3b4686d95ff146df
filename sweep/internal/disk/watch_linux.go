package disk

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// events are the kernel's events (inotify). One Watch serves several folders, because the
// kernel takes 10 ms to close a watch.
type events struct {
	fd      int
	folders map[int32]string // by the kernel's number for the watch
	opened  map[string]bool  // files that were opened, and not read since
}

const watchedEvents = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_DELETE | syscall.IN_OPEN | syscall.IN_ACCESS

// NewWatch returns a Watch without a folder.
func NewWatch() *Watch {
	fd, _ := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	return &Watch{events: events{fd: fd}}
}

// Close ends the watch.
func (w *Watch) Close() { _ = syscall.Close(w.fd) }

// Start begins to watch a folder and all folders below it, in place of the previous
// folder. It replaces folders, so that late events of the previous folder have a number
// that is not in folders.
func (w *Watch) Start(dir string) {
	w.dir, w.folders, w.opened = dir, map[int32]string{}, map[string]bool{}
	w.changes()
	w.add("")
}

// add watches a folder inside the watched folder, and all folders below it.
func (w *Watch) add(folder string) {
	number, err := syscall.InotifyAddWatch(w.fd, filepath.Join(w.dir, folder), watchedEvents)
	if err != nil {
		return
	}
	w.folders[int32(number)] = folder
	inside, _ := os.ReadDir(filepath.Join(w.dir, folder))
	for _, entry := range inside {
		if entry.IsDir() {
			w.add(filepath.Join(folder, entry.Name()))
		}
	}
}

// changes returns the changes since its last call that the kernel reports, in order. The
// parts of one write are one change.
func (w *Watch) changes() (all []Change) {
	var buffer [1 << 14]byte
	moves := map[uint32]string{} // the old path of an entry that moves, by the kernel's cookie
	for {
		n, err := syscall.Read(w.fd, buffer[:])
		if n <= 0 || err != nil {
			return all
		}
		for events := buffer[:n]; len(events) >= syscall.SizeofInotifyEvent; {
			end := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			if c, known := w.change(events[:end], moves); known && (len(all) == 0 || all[len(all)-1] != c) {
				all = append(all, c)
			}
			events = events[end:]
		}
	}
}

// change returns the change that an event of the kernel reports.
func (w *Watch) change(event []byte, moves map[uint32]string) (c Change, known bool) {
	folder, known := w.folders[int32(binary.NativeEndian.Uint32(event))]
	mask, cookie := binary.NativeEndian.Uint32(event[4:]), binary.NativeEndian.Uint32(event[8:])
	path := filepath.Join(folder, strings.TrimRight(string(event[syscall.SizeofInotifyEvent:]), "\x00"))
	if known && mask&syscall.IN_ISDIR != 0 && mask&(syscall.IN_CREATE|syscall.IN_MOVED_TO) != 0 {
		w.add(path)
	}
	switch {
	case !known:
	case mask&syscall.IN_CREATE != 0:
		return Change{Kind: Created, Path: path}, true
	case mask&syscall.IN_MODIFY != 0:
		return Change{Kind: Written, Path: path, Opened: w.opened[path]}, true
	case mask&syscall.IN_MOVED_FROM != 0:
		moves[cookie] = path
	case mask&syscall.IN_MOVED_TO != 0:
		return Change{Kind: Moved, Path: path, From: moves[cookie]}, true
	case mask&syscall.IN_DELETE != 0:
		return Change{Kind: Removed, Path: path}, true
	case mask&(syscall.IN_OPEN|syscall.IN_ACCESS) != 0:
		w.opened[path] = mask&syscall.IN_OPEN != 0
	}
	return Change{}, false
}
