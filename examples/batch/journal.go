package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
)

// state is what the journal knows of one message.
type state string

const (
	planned state = "planned"  // to be sent; the service certainly does not have it
	sending state = "sending"  // its request may have left
	inDoubt state = "in doubt" // its request has left, and the answer was missed
	sent    state = "sent"
	refused state = "refused" // the service, or the client, does not accept the text
	skipped state = "skipped" // it was in doubt, and the operator wants no other request
)

// record is one line of the journal.
type record struct {
	Agent   string `json:"agent,omitempty"`   // the agent of the batch; such a line has no other member
	Message int    `json:"message,omitempty"` // from 1
	State   state  `json:"state,omitempty"`
	Text    string `json:"text,omitempty"` // as it is sent; in the first line of a message
	Reply   string `json:"reply,omitempty"`
	Reason  string `json:"reason,omitempty"` // of refused and in doubt; the client keeps texts and keys out of it
}

// journal is a file to which lines are only ever appended, each on the disk before
// the program acts on it. The last line of a message is its state.
type journal struct {
	agent    string
	messages []record // with the text of the first line and the state of the last; message 1 is the first

	lock *flock.Flock
	mu   sync.Mutex // guards what follows, and messages
	file *os.File
	err  error // of the first write that failed
}

// openJournal reads the journal. If there is none yet, it makes one of the texts,
// one a line.
func openJournal(path string, texts io.Reader) (*journal, error) {
	j := &journal{lock: flock.New(path + ".lock")} // the system unlocks it when the process dies
	if locked, err := j.lock.TryLock(); err != nil || !locked {
		return nil, fmt.Errorf("%s: another process works on it, or it cannot be locked (%v)", path, err)
	}
	lines, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		lines, err = plan(path, texts)
	}
	if err == nil {
		j.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err == nil {
		err = j.read(lines)
	}
	return j, err
}

// plan writes the first lines all at once: a death leaves a whole plan or none.
func plan(path string, texts io.Reader) ([]byte, error) {
	input, err := io.ReadAll(texts)
	if err != nil || !utf8.Valid(input) { // JSON would change it in silence
		return nil, fmt.Errorf("the texts cannot be read, or are not UTF-8 (%v)", err)
	}
	var lines bytes.Buffer
	encoder, n := json.NewEncoder(&lines), 0
	for line := range strings.Lines(string(input)) {
		if text := strings.TrimSpace(line); text != "" {
			n++
			_ = encoder.Encode(record{Message: n, State: planned, Text: text}) // a string can always be
		}
	}
	return lines.Bytes(), maybe.WriteFile(path, lines.Bytes(), 0o600) // under another name first, then renamed
}

// read brings back the state of every message. A death may leave half a line at the
// end. The program has not acted on that line, so it is cut off.
func (j *journal) read(lines []byte) error {
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1]
	for line := range bytes.Lines(lines) {
		var r record
		err := json.Unmarshal(line, &r)
		if err == nil {
			err = j.apply(r)
		}
		if err != nil {
			return fmt.Errorf("the journal is damaged: %w", err)
		}
	}
	for i := range j.messages {
		if j.messages[i].State == sending { // and no later line says how it ended
			j.messages[i].State = inDoubt
		}
	}
	return j.file.Truncate(int64(len(lines)))
}

// note appends a line and returns when it is on the disk. Once a write has failed,
// nobody knows where the file ends: it takes no other line.
func (j *journal) note(r record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if err := j.apply(r); err != nil {
		return err
	}
	line, _ := json.Marshal(r) // strings and a number can always be
	if _, j.err = j.file.Write(append(line, '\n')); j.err == nil {
		j.err = j.file.Sync()
	}
	return j.err
}

// apply does not change what is finished: nothing may send it again.
func (j *journal) apply(r record) error {
	i, finished := r.Message-1, []state{sent, refused, skipped}
	switch {
	case r.Agent != "":
		j.agent = r.Agent
	case i == len(j.messages) && r.State == planned:
		j.messages = append(j.messages, r)
	case i < 0 || i >= len(j.messages) || slices.Contains(finished, j.messages[i].State):
		return fmt.Errorf("message %d is finished, or unknown", r.Message)
	default:
		j.messages[i].State = r.State
	}
	return nil
}

// decide notes what the operator has found out about messages in doubt.
func (j *journal) decide(numbers []int, to state) error {
	for _, n := range numbers {
		if n < 1 || n > len(j.messages) || j.messages[n-1].State != inDoubt {
			return fmt.Errorf("message %d is not in doubt", n)
		}
		if err := j.note(record{Message: n, State: to}); err != nil {
			return err
		}
	}
	return nil
}

// report says what became of the batch, and names what is in doubt. It is an error
// if anything is left.
func (j *journal) report(w io.Writer) error {
	count := map[state]int{}
	for i, m := range j.messages {
		if m.State == sending { // the journal could not take what came after
			m.State = inDoubt
		}
		if count[m.State]++; m.State == inDoubt {
			fmt.Fprintf(w, "message %d is in doubt: find out whether it arrived, then give -resend or -skip\n", i+1)
		}
	}
	fmt.Fprintf(w, "%d of %d messages sent, %d refused, %d skipped, %d in doubt, %d left\n",
		count[sent], len(j.messages), count[refused], count[skipped], count[inDoubt], count[planned])
	if count[inDoubt]+count[planned] > 0 {
		return errors.New("not all is sent: start again with the same journal")
	}
	return nil
}
