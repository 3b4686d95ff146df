package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/page"
	"github.com/agent-messaging-service/agentmessaging-go/internal/atomicfile"
	"github.com/agent-messaging-service/agentmessaging-go/openapi"
)

// Bounds of time. There is no bound for a body or an answer, because a stream has no end,
// and a fault may hang.
const (
	headerTime = 5 * time.Second // for the header of a request
	idleTime   = 2 * time.Minute
	drainTime  = 5 * time.Second // for calls under way at the end
)

// program is a serving fake. start makes it, serve runs it, and stop ends it.
type program struct {
	config   *config
	listener net.Listener
	control  *control.Server
	server   *http.Server
	startup  startupInfo
}

// serve serves until ctx ends, the listener fails or, with --until-eof, standard input ends.
// Then it drains and saves the state. A signal ends ctx. serve returns the exit status.
func serve(ctx context.Context, c *config, stdout, stderr io.Writer) int {
	p, err := start(c, stderr)
	if err != nil {
		printError(stderr, err)
		// A wrong flag has a separate exit status, even if only start could find it.
		if usage := new(usageError); errors.As(err, usage) {
			return exitUsage
		}
		return exitFailed
	}
	// Serve returns by itself only with an error.
	ended := make(chan error, 2)
	go func() { ended <- p.server.Serve(p.listener) }()
	if c.untilEOF {
		go func() { _, err := io.Copy(io.Discard, os.Stdin); ended <- err }()
	}
	// The listener already accepts connections, so a program that reads the printed lines
	// can call at once.
	err = p.announce(stdout)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
		}
	}
	if err := errors.Join(err, p.stop()); err != nil {
		printError(stderr, err)
		return exitFailed
	}
	return exitOK
}

// usageError is about a wrong flag whose value only start could check. The exit status is
// then exitUsage.
type usageError struct{ error }

// start does everything that can fail before the first answer. If it fails, it closes its
// socket.
func start(c *config, stderr io.Writer) (*program, error) {
	listener, err := listen(c)
	if err != nil {
		return nil, err
	}
	p := &program{config: c, listener: listener}
	if err := p.prepare(stderr); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return p, nil
}

// listen listens on loopback unless other addresses are allowed, since the control
// interface shows messages and issues keys.
func listen(c *config) (net.Listener, error) {
	addr := c.addr
	if host, port, _ := net.SplitHostPort(addr); host == "" && !c.allowRemote {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w; give an address of this machine such as 127.0.0.1:8460, where port 0 picks a free one", err)
	}
	// The check uses the listener's real address, because a name like localhost may lead
	// anywhere.
	if !c.allowRemote && !isLoopback(listener) {
		_ = listener.Close()
		return nil, usageError{errors.New("--addr: must be a loopback address such as 127.0.0.1:8460; --allow-remote allows others")}
	}
	return listener, nil
}

// isLoopback reports whether only this machine reaches the listener.
func isLoopback(l net.Listener) bool {
	tcp, ok := l.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// prepare makes the control interface and the server. Only now is the listener's address
// known, which decides whether control needs a token. An error names its flag.
func (p *program) prepare(stderr io.Writer) (err error) {
	o := &p.config.control
	o.Version = version()
	o.BaseURL = baseURL(p.listener.Addr().String())
	token := p.requireToken(&o.Guard)
	o.Log = newLog(p.config.log, stderr)
	if p.control, err = control.New(*o); err != nil {
		return usageError{fmt.Errorf("--replies: %w", err)} // of the options, only the replies can still be wrong
	}
	if err := p.loadState(); err != nil {
		return usageError{fmt.Errorf("--state: %w", err)}
	}
	p.startup = startupInfo{
		BaseURL: o.BaseURL, APIKey: o.Fake.Key(), PageURL: o.BaseURL + "/", ControlURL: o.BaseURL + "/_fake/v1",
		Token: token, Version: o.Version, PID: os.Getpid(),
	}
	// The header is bounded in time and size. The rest of a call may take as long as a fault
	// needs.
	p.server = &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 1 << 18,
		ErrorLog: log.New(stderr, "agentmessaging-fake: ", 0), // for errors of net/http, such as too many open files
	}
	return nil
}

// loadState reads the file of --state. Without a file, the state begins empty. A
// read-only file must not be replaced at the end, so loadState also opens the file for
// writing, and refuses a read-only file now. Two programs may use the same file; then the
// program that ends last saves its state.
func (p *program) loadState() error {
	path := p.config.statePath
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = p.control.StartFrom(file)
		_ = file.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; move it away to start with an empty state", path, err)
	}
	return nil
}

// requireToken makes the guard ask for a token if other machines reach the program. It
// returns the token if it made one. On loopback the guard asks for no token, and checks
// Host instead.
func (p *program) requireToken(g *jsonapi.Guard) (made string) {
	g.AnyHost = !isLoopback(p.listener)
	switch {
	case !g.AnyHost:
		g.Token = "" // a token that the shell has exported for another fake must not lock this fake
	case g.Token == "":
		made = rand.Text()
		g.Token = made
	}
	return made
}

// announce prints the addresses of the program and writes the ready file, once the
// program serves. The file is written first, so that a script that has read standard
// output may rely on it. The program does not remove the file at its end, because another
// program may have written it by then. An error ends the program, since nobody would know
// its address.
func (p *program) announce(stdout io.Writer) error {
	text := p.startup.text(p.config.json)
	// The file is written whole or not at all, so that a script that waits for it never
	// reads a part.
	if path := p.config.readyFile; path != "" {
		if err := atomicfile.Write(path, text); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
	}
	_, err := stdout.Write(text)
	return err
}

// startupInfo has the values that the program prints when it starts to serve, and writes to
// --ready-file, where another program may wait for them. The tags are the names of the
// members with --json.
type startupInfo struct {
	BaseURL    string `json:"base_url"`
	APIKey     string `json:"api_key"`
	PageURL    string `json:"page_url"`
	ControlURL string `json:"control_url"`
	// Token is set if the program made a token. A token that the user chose is not repeated.
	Token   string `json:"token,omitempty"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// text returns the values as lines for a shell, or as one line of JSON. A shell that
// sources the lines gets the client's variables. The page's address is a comment in them.
func (s startupInfo) text(asJSON bool) []byte {
	if asJSON {
		// The JSON is one line, so that a program can read up to the line feed and go on.
		encoded, _ := json.Marshal(s) // never fails for strings and a number
		return append(encoded, '\n')
	}
	lines := fmt.Sprintf("export AGENT_MESSAGING_BASE_URL=%s\nexport AGENT_MESSAGING_API_KEY=%s\n", quoteShell(s.BaseURL), quoteShell(s.APIKey))
	// This is the variable of --token, so that another start in this shell uses the same
	// token.
	if s.Token != "" {
		lines += fmt.Sprintf("export AGENT_MESSAGING_FAKE_TOKEN=%s\n", quoteShell(s.Token))
	}
	return []byte(lines + fmt.Sprintf("# page: %s\n", s.PageURL))
}

// plainWord matches a word that a shell reads unchanged.
var plainWord = regexp.MustCompile(`^[\w\-./:]+$`)

// quoteShell quotes a word for a shell, if it needs quotes.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// stop ends streams and waits, and lets calls under way end within drainTime. Then it
// saves the state, which cannot change any more.
func (p *program) stop() error {
	// Streams never end by themselves, so Shutdown would wait for them until drainTime.
	p.control.End()
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close() // ends the calls that a fault still delays
	}
	return p.saveState()
}

// saveState writes the state at the end, whole or not at all. If something fails, the
// file of an earlier run stays.
func (p *program) saveState() error {
	if p.config.statePath == "" {
		return nil
	}
	var b bytes.Buffer
	// The state is written to memory first, so that an error of the fake does not destroy
	// the old file.
	err := p.config.control.Fake.WriteState(&b)
	if err == nil {
		err = atomicfile.Write(p.config.statePath, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// baseURL returns the URL at which clients on this machine reach the listener on addr.
// Clients cannot call 0.0.0.0 or ::, which mean every address. Clients on other machines
// use a name of this machine, and the same port.
func baseURL(addr string) string {
	host, port, _ := net.SplitHostPort(addr) // a listener always has both
	if net.ParseIP(host).IsUnspecified() {
		return "http://127.0.0.1:" + port
	}
	return "http://" + addr
}

// handler serves all paths of the program: its own paths below /_fake/, the page, and two
// documents for tools. The service answers every other path. So a client with a wrong
// path sees the service's 404, and the page shows the call. Paths are compared unchanged,
// and none is redirected.
//
// Everything but the two documents is refused for a Host that is not the program's own.
func (p *program) handler() http.Handler {
	dashboard, service := page.Handler(), p.control.Service()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused := p.config.control.Guard.CheckHost(r)
		switch path := r.URL.Path; {
		case path == "/healthz": // for the starter of the program, from any host and without a token
			_, _ = io.WriteString(w, "ok\n")
		case path == "/openapi.yaml":
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = io.WriteString(w, openapi.Document)
		// Refuse before anything shows or changes the data of the fake.
		case refused != nil:
			jsonapi.Answer(w, r, 0, nil, refused)
		case strings.HasPrefix(path+"/", "/_fake/v1/"):
			p.control.ServeHTTP(w, r)
		case path == "/", path == "/favicon.ico", strings.HasPrefix(path, "/_fake/"):
			dashboard.ServeHTTP(w, r)
		// Every other path, with /v1/ or without, is a call of the service.
		default:
			service.ServeHTTP(w, r)
		}
	})
}
