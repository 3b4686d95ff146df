package weight

import (
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"text/template"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
)

// program has one peer in it, with both calls, so that the linker leaves
// neither out.
var program = template.Must(template.New("main.go").Parse(`package main

import (
	"context"
	"log"
	"net/http"
	"os"

	peer "{{.}}"
)

func main() {
	calls, err := peer.Peer.New(http.DefaultTransport, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := calls.Post(ctx); err != nil {
		log.Fatal(err)
	}
	if err := calls.Get(ctx); err != nil {
		log.Fatal(err)
	}
}
`))

// writeProgram writes the program of a peer into a folder.
func writeProgram(dir string, peer peers.Peer) (file string, err error) {
	file = filepath.Join(dir, "main.go")
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	if err := program.Execute(f, packageOf(peer)); err != nil {
		f.Close()
		return "", err
	}
	return file, f.Close()
}

// packageOf is the import path of a peer: that of its function New, whose name
// follows the first dot of the last element.
func packageOf(peer peers.Peer) string {
	folder, name := path.Split(runtime.FuncForPC(reflect.ValueOf(peer.New).Pointer()).Name())
	name, _, _ = strings.Cut(name, ".")
	return folder + name
}
