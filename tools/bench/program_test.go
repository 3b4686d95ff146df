//go:build unix

package bench_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
)

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serveMux makes the test's binary the program that BenchmarkProgram compares
// the fake's program with.
const serveMux = "BENCH_SERVE_MUX"

func TestMain(m *testing.M) {
	if os.Getenv(serveMux) != "" {
		muxProgram()
	}
	os.Exit(m.Run())
}

// muxProgram reads and writes the JSON of a message, and does nothing else.
func muxProgram() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/agents/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		var message struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"reply_text": "You said: " + message.Text, "trace_id": "trace_1"})
	})
	panic(http.Serve(listener, mux)) //nolint:gosec // on loopback
}

func buildProgram(b *testing.B) string {
	program := filepath.Join(b.TempDir(), "program")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/agentmessaging-fake").CombinedOutput()
	require.NoError(b, err, "%s", out)
	return program
}

// start runs a program until it has answered once.
func start(b *testing.B, program *exec.Cmd) (url string) {
	output, err := program.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, program.Start())
	for lines := bufio.NewScanner(output); url == "" && lines.Scan(); {
		url = address.FindString(lines.Text())
	}
	resp, err := http.Get(url + "/healthz")
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	return url
}

func stop(b *testing.B, program *exec.Cmd) {
	require.NoError(b, program.Process.Kill())
	_ = program.Wait() // it was killed
}

// BenchmarkStart starts the fake's program, to its first answer, and ends it.
func BenchmarkStart(b *testing.B) {
	program := buildProgram(b)
	for b.Loop() {
		run := exec.Command(program, "--addr=127.0.0.1:0", "--log=off")
		start(b, run)
		stop(b, run)
	}
}

// BenchmarkProgram is 64 connections to a program, and the processor time of
// that program alone.
func BenchmarkProgram(b *testing.B) {
	b.Setenv(serveMux, "1")
	program := buildProgram(b)
	for of, args := range map[string][]string{
		"client": {program, "--addr=127.0.0.1:0", "--log=off", "--limits=off", "--key=" + key},
		"base":   {os.Args[0]},
	} {
		b.Run("of="+of, func(b *testing.B) {
			run := exec.Command(args[0], args[1:]...)
			url := start(b, run)
			if of == "client" {
				addAgent(b, url)
			}
			parallel(b, byHand(b, pooled(new(http.Transport)), url).send)
			b.StopTimer()
			stop(b, run)
			used := run.ProcessState.UserTime() + run.ProcessState.SystemTime()
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
		})
	}
}

// addAgent makes the agent that the calls are for: the first one of a fake.
func addAgent(b *testing.B, url string) {
	client, err := agentmessaging.NewClient(url, key)
	require.NoError(b, err)
	agent, err := client.CreateAgent(b.Context(), agentmessaging.CreateAgentParams{})
	require.NoError(b, err)
	require.Equal(b, agentID, agent.ID)
}
