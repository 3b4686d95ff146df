//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestMain is the program where the environment says so: the tests start
// themselves as the process that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("BATCH_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	// With a limit on the size of files, the system ends a write in the middle of a
	// line and refuses all that follow, as a full disk does.
	if size, err := strconv.ParseUint(os.Getenv("BATCH_DISK"), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size}); err != nil {
			panic(err)
		}
	}
	signal.Ignore(syscall.SIGXFSZ)
	main()
}

// bench runs the program again and again, against one fake and with one journal.
type bench struct {
	t        *testing.T
	fake     *fakeserver.Server
	messages int
	journal  string
	env      []string
}

func newBench(t *testing.T, messages int) *bench {
	return &bench{t: t, messages: messages, journal: filepath.Join(t.TempDir(), "journal"), fake: fakeserver.New(t,
		fakeserver.WithLimit(fakeserver.LimitKeyMinute, 1e6), fakeserver.WithLimit(fakeserver.LimitIPMinute, 1e6),
		fakeserver.WithLimit(fakeserver.LimitKeyDay, 1e6), fakeserver.WithCallLimit(10*messages+1000))}
}

// request is the n-th message that a process sends.
type request struct {
	process *os.Process
	n       int64
	w       http.ResponseWriter
	handle  func() // lets the fake carry it out
}

// result is what a process left.
type result struct {
	code           int // -1: it was killed
	stdout, stderr string
	inDoubt        []int // that it named
}

// run starts the program and waits for its end. act does what becomes of each
// message; line, if it is not nil, gets each line of the standard error.
func (b *bench) run(act func(request), line func(*os.Process, string), args ...string) result {
	var calls atomic.Int64
	started := make(chan struct{})
	var program *exec.Cmd
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-started
		if handle := func() { b.fake.ServeHTTP(w, r) }; strings.HasSuffix(r.URL.Path, "/messages") {
			act(request{program.Process, calls.Add(1), w, handle})
		} else {
			handle()
		}
	}))
	defer server.Close()
	program = exec.Command(os.Args[0], append([]string{"-journal", b.journal}, args...)...)
	program.Env = append(append(os.Environ(), "BATCH_PROGRAM=1", "AGENT_MESSAGING_BASE_URL="+server.URL,
		"AGENT_MESSAGING_API_KEY="+b.fake.Key()), b.env...)
	var texts, stdout, stderr bytes.Buffer
	for n := range b.messages {
		fmt.Fprintln(&texts, "message", n+1)
	}
	program.Stdin, program.Stdout = &texts, &stdout
	lines, err := program.StderrPipe()
	require.NoError(b.t, err)
	require.NoError(b.t, program.Start())
	close(started)
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		fmt.Fprintln(&stderr, scanner.Text())
		if line != nil {
			line(program.Process, scanner.Text())
		}
	}
	_ = program.Wait()
	server.Close() // when it returns, the service has carried out all that the process has sent
	r := result{code: program.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	for _, found := range regexp.MustCompile(`message (\d+) is in doubt`).FindAllStringSubmatch(r.stdout, -1) {
		r.inDoubt = append(r.inDoubt, number(b.t, found[1]))
	}
	return r
}

func number(t *testing.T, digits string) int {
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return n
}

func handle(r request) { r.handle() }

// inDoubt lets the program name what is in doubt, and send nothing.
func (b *bench) inDoubt() []int { return b.run(handle, nil, "-workers", "0").inDoubt }

// arrived counts how often the agents have each message.
func (b *bench) arrived() map[int]int {
	count := map[int]int{}
	for _, agent := range b.fake.Agents() {
		for _, exchange := range b.fake.Conversation(agent.ID) {
			count[number(b.t, strings.TrimPrefix(exchange.Text, "message "))]++
		}
	}
	return count
}

// decisions are the flags that an operator gives who has asked the agents.
func (b *bench) decisions(inDoubt []int) (flags []string) {
	arrived := b.arrived()
	for _, n := range inDoubt {
		if arrived[n] > 0 {
			flags = append(flags, "-skip", strconv.Itoa(n))
		} else {
			flags = append(flags, "-resend", strconv.Itoa(n))
		}
	}
	return flags
}

// finish sends the rest. Every message has arrived once then, but for those that the
// service refuses. Before anything is decided, what is not in doubt has.
func (b *bench) finish(refused ...int) (inDoubt []int) {
	wants := func(inDoubt []int) {
		arrived := b.arrived()
		for n := 1; n <= b.messages; n++ {
			want := 1
			if slices.Contains(refused, n) {
				want = 0
			}
			if !slices.Contains(inDoubt, n) {
				require.Equal(b.t, want, arrived[n], "message %d", n)
			}
		}
	}
	inDoubt = b.run(handle, nil).inDoubt
	wants(inDoubt)
	last := b.run(handle, nil, b.decisions(inDoubt)...)
	require.Zero(b.t, last.code, last.stderr)
	wants(nil)
	return inDoubt
}

const workers = 4 // by default

// TestKilled kills the program at random moments and starts it again each time.
// BATCH_KILLS=100 kills it a hundred times.
func TestKilled(t *testing.T) {
	kills := 12
	if many := os.Getenv("BATCH_KILLS"); many != "" {
		kills = number(t, many)
	}
	b := newBench(t, 8*kills)
	b.fake.OnMessage(fakeserver.ByText("message 2")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return fakeserver.Reply{Status: 400} })
	random := rand.New(rand.NewPCG(1, uint64(kills)))
	flush := func(r request) { r.handle(); assert.NoError(t, http.NewResponseController(r.w).Flush()) }
	kill := func(r request) { assert.NoError(t, r.process.Kill()) }
	ways := []struct {
		name string
		act  func(request)
	}{
		{"killed before the effect", kill},
		{"killed before the answer", func(r request) { r.handle(); kill(r) }},
		{"killed after the answer", func(r request) { flush(r); kill(r) }},
		{"interrupted", func(r request) { assert.NoError(t, r.process.Signal(os.Interrupt)); r.handle() }},
		{"stopped, then killed", func(r request) {
			assert.NoError(t, r.process.Signal(syscall.SIGSTOP))
			flush(r)
			assert.Contains(t, b.run(handle, nil).stderr, "another process works on it")
			kill(r)
		}},
		{"disk full", handle},
	}
	doubtful, total := 0, 0
	for i := range kills {
		way, at := ways[i%len(ways)], 1+random.Int64N(6)
		if way.name == "disk full" { // in the middle of any line, or of the plan
			size := random.Int64N(1200)
			if journal, err := os.Stat(b.journal); err == nil {
				size += journal.Size()
			}
			b.env = []string{fmt.Sprint("BATCH_DISK=", size)}
		}
		r := b.run(func(r request) {
			if r.n == at {
				way.act(r)
			} else {
				r.handle()
			}
		}, nil)
		b.env = nil
		require.NotZero(t, r.code, "%s at message %d: %s%s", way.name, at, r.stdout, r.stderr)
		named := b.inDoubt()
		t.Logf("%s at message %d: %d new in doubt", way.name, at, len(named)-doubtful)
		assert.LessOrEqual(t, len(named), doubtful+workers, way.name)
		if way.name == "interrupted" {
			assert.Len(t, named, doubtful, r.stdout+r.stderr)
		}
		total += len(named) - doubtful
		if doubtful = len(named); random.IntN(2) == 0 {
			b.run(handle, nil, append(b.decisions(named), "-workers", "0")...)
			doubtful = 0
		}
	}
	b.finish(2)
	t.Logf("%d kills, %d messages, %d were in doubt", kills, b.messages, total)
}

// A death, or an interrupt, while all wait for a limit leaves nothing in doubt.
func TestKilledInLine(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		b := newBench(t, 12)
		spent := fakeserver.Change("the minute is spent", func() { b.fake.Exhaust(b.fake.Key(), fakeserver.LimitKeyMinute) })
		b.fake.Inject(spent, fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).Nth(3)
		waiting := map[string]bool{}
		r := b.run(handle, func(p *os.Process, line string) {
			if message, _, found := strings.Cut(line, " waits at place "); found {
				waiting[message] = true
			}
			if len(waiting) == workers {
				assert.NoError(t, p.Signal(signal))
				clear(waiting)
			}
		})
		assert.NotZero(t, r.code, r.stderr)
		b.fake.Advance(time.Minute)
		assert.Empty(t, b.finish(), signal)
	}
}

// A service that answers nothing of use makes no more messages doubtful than there
// are workers.
func TestBrokenService(t *testing.T) {
	b := newBench(t, 20)
	broken := b.fake.Inject(fakeserver.LoseReply(fakeserver.Answer(502, "")), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage))
	assert.Len(t, b.run(handle, nil).inDoubt, workers)
	broken.Remove()
	assert.Len(t, b.finish(), workers)
}
