//go:build unix

// Command frontends measures the client behind real front ends: nginx and HAProxy,
// over HTTP/1.1 and HTTP/2, beside net/http by hand. It prints the table of
// docs/faults.md, and fails if the service saw a POST of the client twice. It takes
// two minutes; nginx and haproxy have to be installed:
//
//	apt-get install nginx haproxy
//	go run ./tools/frontends
//
// A relay between client and front end counts connections and frames.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

func main() {
	log.SetFlags(0)
	certificate, roots := newCertificate()
	up := newUpstream()
	doubled := 0
	fmt.Println("| Front end | Calls | Made by | Answered | Unknown, failed | Service saw, doubled | Connections | RST_STREAM by client, by front end | GOAWAY |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, front := range []frontend{nginx, haproxy} {
		for _, protocol := range []string{"http/1.1", "h2"} {
			for _, scene := range scenes {
				for _, hand := range []bool{false, true} {
					f := front.start(up.address, certificate)
					r := newRelay(f.address, protocol, certificate)
					up.reset()
					n := scene.run(up, newCaller(r, roots, hand), f)
					saw, twice := up.saw()
					made := "net/http"
					if !hand {
						made, doubled = "client", doubled+twice
					}
					fmt.Printf("| %s, %s | %s | %s | %d of %d | %d, %d | %d, %d | %d | %d, %d | %d |\n", front.name, protocol, scene.name, made,
						n.ok.Load(), n.calls, n.unknown.Load(), n.failed.Load(), saw, twice, r.connections.Load(), r.resetsUp.Load(), r.resetsDown.Load(), r.goAways.Load())
					r.close()
					f.stop()
				}
			}
		}
	}
	if doubled > 0 {
		log.Fatalf("%d POSTs of the client reached the service twice", doubled)
	}
}

// scene is what happens during the calls.
type scene struct {
	name string
	run  func(*upstream, caller, *process) *tally
}

var scenes = []scene{
	{"200 at once, 10 streams allowed", func(_ *upstream, call caller, _ *process) *tally {
		return inParallel(200, 200, call)
	}},
	{"400 of 4 callers", func(_ *upstream, call caller, _ *process) *tally {
		return inParallel(400, 4, call)
	}},
	{"400 of 4 callers, the front end reloads 3 times", func(_ *upstream, call caller, f *process) *tally {
		done := make(chan bool)
		go func() {
			defer close(done)
			for range 3 {
				time.Sleep(100 * time.Millisecond)
				f.reload()
			}
		}()
		defer func() { <-done }()
		return inParallel(400, 4, call)
	}},
	{"100 of 4 callers, the service breaks off every tenth", func(up *upstream, call caller, _ *process) *tally {
		up.breaks.Store(10)
		return inParallel(100, 4, call)
	}},
}

// tally counts how calls ended.
type tally struct {
	calls               int
	ok, unknown, failed atomic.Int64
}

// caller sends a POST with a text of its own.
type caller func(ctx context.Context, text string) error

func inParallel(calls, callers int, call caller) *tally {
	n := &tally{calls: calls}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	var next atomic.Int64
	for range callers {
		group.Go(func() {
			for number := next.Add(1); number <= int64(calls); number = next.Add(1) {
				switch err := call(ctx, fmt.Sprint("message ", number)); {
				case err == nil:
					n.ok.Add(1)
				case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
					n.unknown.Add(1)
				default:
					n.failed.Add(1)
				}
			}
		})
	}
	group.Wait()
	return n
}

func newCaller(r *relay, roots *rootSet, hand bool) caller {
	transport := roots.transport()
	r.onClose = transport.CloseIdleConnections
	if hand {
		return func(ctx context.Context, text string) error { return byHand(ctx, transport, r.url, text) }
	}
	client, err := agentmessaging.NewClient(r.url, "a-key-for-tests", agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	must(err)
	return func(ctx context.Context, text string) error {
		_, err := client.SendMessage(ctx, "agent_1", agentmessaging.MessageParams{Text: text})
		return err
	}
}

func byHand(ctx context.Context, transport http.RoundTripper, url, text string) error {
	body := strings.NewReader(fmt.Sprintf(`{"text":%q}`, text))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/agents/agent_1/messages", body)
	must(err)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}

func must(err error) {
	if err != nil {
		log.Println(err)
		os.Exit(2)
	}
}
