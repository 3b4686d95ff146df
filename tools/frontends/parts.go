//go:build unix

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// upstream is the service behind the front ends. It knows which texts it has seen.
type upstream struct {
	address string
	breaks  atomic.Int64 // off every so many requests; 0: none
	mu      sync.Mutex
	seen    map[string]int
}

func newUpstream() *upstream {
	up := &upstream{}
	listener := listen()
	up.address = listener.Addr().String()
	go func() { must(http.Serve(listener, up)) }() //nolint:gosec // on loopback
	return up
}

func (up *upstream) reset() {
	up.mu.Lock()
	defer up.mu.Unlock()
	up.seen = map[string]int{}
	up.breaks.Store(0)
}

func (up *upstream) saw() (requests, doubled int) {
	up.mu.Lock()
	defer up.mu.Unlock()
	for _, times := range up.seen {
		requests += times
		doubled += min(times-1, 1)
	}
	return requests, doubled
}

func (up *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct{ Text string }
	must(json.NewDecoder(r.Body).Decode(&message))
	up.mu.Lock()
	up.seen[message.Text]++
	number := len(up.seen)
	up.mu.Unlock()
	if every := int(up.breaks.Load()); every > 0 && number%every == 0 {
		panic(http.ErrAbortHandler)
	}
	time.Sleep(5 * time.Millisecond)
	_, _ = io.WriteString(w, `{"reply_text":"hi","trace_id":"t"}`)
}

// relay stands between the client and a front end and reads along.
type relay struct {
	url                           string
	connections                   atomic.Int64
	resetsUp, resetsDown, goAways atomic.Int64
	listener                      net.Listener
	onClose                       func()
}

func newRelay(front, protocol string, certificate tls.Certificate) *relay {
	r := &relay{listener: tls.NewListener(listen(), &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}})}
	r.url = "https://" + r.listener.Addr().String()
	go func() {
		for {
			client, err := r.listener.Accept()
			if err != nil {
				return
			}
			r.connections.Add(1)
			go r.pass(client, front, protocol)
		}
	}()
	return r
}

func (r *relay) pass(client net.Conn, front, protocol string) {
	defer client.Close()
	server, err := tls.Dial("tcp", front, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}) //nolint:gosec // on loopback
	if err != nil {
		return
	}
	defer server.Close()
	fromClient, fromServer := io.Reader(client), io.Reader(server)
	if protocol == "h2" {
		fromClient = r.counting(client, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), &r.resetsUp, new(atomic.Int64))
		fromServer = r.counting(server, 0, &r.resetsDown, &r.goAways)
	}
	go func() {
		_, _ = io.Copy(server, fromClient)
		_ = server.CloseWrite()
	}()
	_, _ = io.Copy(client, fromServer)
}

// counting returns what it reads, and counts RST_STREAM and GOAWAY frames in it
// (RFC 9113, 6.4 and 6.8), after a preface.
func (r *relay) counting(from io.Reader, preface int, resets, goAways *atomic.Int64) io.Reader {
	read, write := io.Pipe()
	go func() {
		reader := bufio.NewReader(read)
		_, err := io.CopyN(io.Discard, reader, int64(preface))
		for header := make([]byte, 9); err == nil; {
			if _, err = io.ReadFull(reader, header); err != nil {
				break
			}
			switch header[3] {
			case 3:
				resets.Add(1)
			case 7:
				goAways.Add(1)
			}
			_, err = io.CopyN(io.Discard, reader, int64(header[0])<<16|int64(header[1])<<8|int64(header[2]))
		}
		read.CloseWithError(io.EOF)
	}()
	return io.TeeReader(from, ignoring{write})
}

// ignoring never fails: who reads along must not disturb.
type ignoring struct{ io.Writer }

func (w ignoring) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
}

func (r *relay) close() {
	r.onClose()
	_ = r.listener.Close()
}

// frontend is a program with its configuration.
type frontend struct {
	name   string
	config string // with FRONT, BACK and DIR
	start_ func(config string) *exec.Cmd
	again  syscall.Signal // reloads
}

var nginx = frontend{
	name: "nginx 1.22",
	config: `daemon off; pid DIR/pid; error_log /dev/null; worker_processes 2; worker_shutdown_timeout 5s;
events { worker_connections 4096; }
http {
	access_log off; client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
	upstream service { server BACK; keepalive 64; }
	server {
		listen FRONT ssl http2; ssl_certificate DIR/pem; ssl_certificate_key DIR/pem;
		http2_max_concurrent_streams 10; keepalive_requests 25;
		location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}`,
	start_: func(config string) *exec.Cmd { return exec.Command("nginx", "-c", config) },
	again:  syscall.SIGHUP,
}

var haproxy = frontend{
	name: "HAProxy 2.6",
	config: `global
	tune.h2.max-concurrent-streams 10
	hard-stop-after 5s
defaults
	mode http
	timeout connect 5s
	timeout client 30s
	timeout server 30s
frontend front
	bind FRONT ssl crt DIR/pem alpn h2,http/1.1
	default_backend service
backend service
	server one BACK
`,
	start_: func(config string) *exec.Cmd { return exec.Command("haproxy", "-W", "-q", "-f", config) },
	again:  syscall.SIGUSR2,
}

// process is a front end that runs.
type process struct {
	address string
	command *exec.Cmd
	signal  syscall.Signal
	dir     string
}

func (f frontend) start(back string, certificate tls.Certificate) *process {
	dir, err := os.MkdirTemp("", "frontends")
	must(err)
	listener := listen()
	p := &process{address: listener.Addr().String(), signal: f.again, dir: dir}
	must(listener.Close())
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	must(err)
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	must(os.WriteFile(filepath.Join(dir, "pem"), both, 0o600))
	config := strings.NewReplacer("FRONT", p.address, "BACK", back, "DIR", dir).Replace(f.config)
	must(os.WriteFile(filepath.Join(dir, "conf"), []byte(config), 0o600))
	p.command = f.start_(filepath.Join(dir, "conf"))
	p.command.Stderr = os.Stderr
	must(p.command.Start())
	for range 100 {
		conn, err := net.Dial("tcp", p.address)
		if err == nil {
			_ = conn.Close()
			return p
		}
		time.Sleep(20 * time.Millisecond)
	}
	must(fmt.Errorf("%s does not listen", f.name))
	return nil
}

func (p *process) reload() { must(p.command.Process.Signal(p.signal)) }

func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
	_ = os.RemoveAll(p.dir)
}

// rootSet makes transports that trust the certificate.
type rootSet struct{ pool *x509.CertPool }

func (r *rootSet) transport() *http.Transport {
	return &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: r.pool}, MaxIdleConnsPerHost: 256}
}

func newCertificate() (tls.Certificate, *rootSet) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(err)
	leaf, err := x509.ParseCertificate(der)
	must(err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, &rootSet{pool}
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	return listener
}
