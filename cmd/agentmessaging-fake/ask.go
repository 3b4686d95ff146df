package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ask calls /healthz or /readyz of a program that serves, for containers,
// whose images often hold no other client.
func ask(ctx context.Context, c *config) error {
	host, port, _ := net.SplitHostPort(c.addr) // setAddr has accepted it
	if port == "0" {
		return errors.New("--addr: must have the port of the program that is asked")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/"+c.command, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true} // and no proxy of the environment
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s: %w", c.command, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: the answer is %s", c.command, resp.Status)
	}
	return nil
}
