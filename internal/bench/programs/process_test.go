package programs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	startTime = 30 * time.Second // for the first answer; of those measured the slowest takes 2 s
	pollTime  = 200 * time.Microsecond
)

// process is a program that runs and has answered.
type process struct {
	caller
	pid  int
	took time.Duration // from exec to the first good answer
	stop func()        // ends it, and returns when it has ended
}

// start starts a program and polls it until it answers. All are given a port
// that was free a moment ago, also those that could choose one: so all are
// polled alike, and none has to be understood from what it prints.
func start(tb testing.TB, s *subject, program string) *process {
	tb.Helper()
	addr := freeAddr(tb)
	p := &process{caller: newCaller("http://" + addr)}
	ctx, began := p.exec(tb, program, s.arguments(addr))
	for {
		err := p.do(ctx, s.ready)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			require.FailNow(tb, s.name+" did not start", "%v; last: %v", context.Cause(ctx), err)
		}
		pause(ctx, pollTime)
	}
	p.took = time.Since(began)
	return p
}

// exec returns a context that ends with the program, or when it has had its
// time to start.
func (p *process) exec(tb testing.TB, program string, args []string) (ctx context.Context, began time.Time) {
	tb.Helper()
	var said bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second // for a child that outlives it and holds stderr
	lead(cmd)
	ctx, late := context.WithTimeout(tb.Context(), startTime)
	ctx, over := context.WithCancelCause(ctx)
	began = time.Now()
	require.NoError(tb, cmd.Start())
	p.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		over(fmt.Errorf("it ended: %v: %s", cmd.Wait(), &said))
	}()
	p.stop = sync.OnceFunc(func() {
		kill(cmd.Process)
		<-ended
		late()
		p.close()
	})
	tb.Cleanup(p.stop)
	return ctx, began
}

// pause waits, but not beyond ctx. The runtime may round it up to 1 ms.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer l.Close()
	return l.Addr().String()
}
