// Package programs measures the standalone fake as a program, beside other
// fakes and mocks that are run as programs. The script get has them built;
// nothing here calls a network.
package programs

import (
	"flag"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var folder = flag.String("programs.bin", "bin", "folder of the programs that the script get built")

// key is of the form that stripe-mock asks for. The others take any.
const key = "sk_test_123"

// A subject is a program that stands for a service.
type subject struct {
	name  string
	build string   // main package that go build makes it from, as seen from here; empty: it is in the folder
	args  []string // of the program; $addr, $host and $port are where it shall serve
	ready ask      // answered as soon as it serves
	first ask      // what the calls need; without a method there is nothing
	call  ask      // what is measured: of its calls the one most like sending a message
}

// ours says that it is built from this repository, and so is always there.
func (s *subject) ours() bool { return s.build != "" }

// An ask is a request. An answer is good with status 200 and a body.
type ask struct{ method, path, contentType, body string }

const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded"
)

var message = ask{"POST", "/v1/agents/agent_000001/messages", asJSON, `{"text":"Hello, where is the order that I made last week?"}`}

// subjects: each says as little in its log as it can be told to. Each upload
// to fake-gcs-server replaces the one before, since it looks through all of a
// bucket's objects for the name, and would be slower with each.
var subjects = []*subject{
	{
		name:  "net-http-by-hand",
		build: "./bare",
		args:  []string{"$addr"},
		ready: ask{method: "GET", path: "/v1/agents/agent_000001"},
		call:  message,
	},
	{
		name:  "agentmessaging-fake",
		build: "../../../cmd/agentmessaging-fake",
		args:  []string{"--addr=$addr", "--key=" + key, "--limits=off"},
		ready: ask{method: "GET", path: "/v1/status"},
		first: ask{"POST", "/v1/agents", asJSON, "{}"},
		call:  message,
	},
	{
		name:  "stripe-mock",
		args:  []string{"-http-addr=$addr", "-https-addr=$host:"},
		ready: ask{method: "GET", path: "/v1/customers/cus_000001"},
		call:  ask{"POST", "/v1/customers", asForm, "name=Ada&description=Who+made+an+order+last+week"},
	},
	{
		name:  "prism",
		args:  []string{"mock", "--host=$host", "--port=$port", "--verboseLevel=silent", "../../../openapi.yaml"},
		ready: ask{method: "GET", path: "/v1/status"},
		call:  message,
	},
	{
		name:  "fake-gcs-server",
		args:  []string{"-backend=memory", "-scheme=http", "-host=$host", "-port=$port", "-log-level=error"},
		ready: ask{method: "GET", path: "/storage/v1/b?project=p"},
		first: ask{"POST", "/storage/v1/b?project=p", asJSON, `{"name":"messages"}`},
		call:  ask{"POST", "/upload/storage/v1/b/messages/o?uploadType=media&name=message", asJSON, message.body},
	},
}

// program is the file to run. It is built, or was by get; where it was not, tb
// is skipped.
func (s *subject) program(tb testing.TB) string {
	tb.Helper()
	if s.ours() {
		return s.compile(tb)
	}
	file, err := exec.LookPath(filepath.Join(*folder, s.name))
	if err != nil {
		tb.Skipf("%s is not in the folder %s: run bench/programs/get", s.name, *folder)
	}
	return file
}

func (s *subject) compile(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), s.name)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	// Where git does not trust the checkout, go build would fail to stamp.
	out, err := exec.CommandContext(tb.Context(), "go", "build", "-C", s.build, "-buildvcs=false", "-o", file, ".").CombinedOutput()
	if err != nil {
		tb.Fatalf("go build %s: %v\n%s", s.build, err, out)
	}
	return file
}

// arguments are args for a program that shall serve at addr.
func (s *subject) arguments(addr string) []string {
	host, port, _ := net.SplitHostPort(addr)
	place := strings.NewReplacer("$addr", addr, "$host", host, "$port", port)
	args := make([]string, len(s.args))
	for i, arg := range s.args {
		args[i] = place.Replace(arg)
	}
	return args
}
