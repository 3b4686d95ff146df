package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// service is a fake on a socket, with one agent.
type service struct {
	fake    *fakeserver.Server
	url     string
	agentID string
	prefix  string // of the keys in Redis
	close   func()
}

func startService() (*service, error) {
	fake, err := fakeserver.Open(
		fakeserver.WithLimit(fakeserver.LimitKeyMinute, perMinute),
		fakeserver.WithLimit(fakeserver.LimitIPMinute, perMinute),
		fakeserver.WithSlidingWindows())
	if err != nil {
		return nil, err
	}
	socket := httptest.NewServer(fake)
	return &service{
		fake: fake, url: socket.URL, agentID: fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID,
		prefix: fmt.Sprintf("fleet-example-%d", time.Now().UnixNano()),
		close: func() {
			socket.Close()
			fake.Close()
		},
	}, nil
}

// startRedis returns the address of Redis, "" where there is none.
func startRedis() (url string, stop func(), err error) {
	if url := os.Getenv(envRedis); url != "" {
		return url, func() {}, nil
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return "", nil, nil
	}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return "", nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	server := exec.Command(binary, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no")
	stop = func() {
		server.Process.Kill()
		server.Wait()
		os.RemoveAll(dir)
	}
	if err := server.Start(); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	awaitFile(socket)
	return "unix://" + socket, stop, nil
}

// awaitFile gives up after five seconds; what comes next then says why.
func awaitFile(name string) {
	for range 500 {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
