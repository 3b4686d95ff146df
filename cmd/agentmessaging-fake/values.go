package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// setAddr accepts host and port. No host means loopback, unless --allow-remote.
func (c *config) setAddr(value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return errors.New("must be host and port, such as 127.0.0.1:8460 or [::1]:0")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New("the port must be from 0 to 65535")
	}
	c.addr = value
	return nil
}

func isLocal(addr string) bool {
	host, _, _ := net.SplitHostPort(addr) // setAddr has accepted it
	return host == "" || control.IsLoopback(host)
}

func (c *config) setHosts(value string) error {
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if strings.ContainsAny(name, ":/ ") {
			return errors.New("must be names without port and scheme, separated by commas")
		}
		if name != "" {
			c.control.Hosts = append(c.control.Hosts, name)
		}
	}
	return nil
}

func (c *config) setToken(value string) error {
	if len(value) < 16 || len(value) > 256 || !isVisible(value) {
		return errors.New("must be 16 to 256 characters of visible ASCII")
	}
	c.control.Token = value
	return nil
}

func (c *config) setKey(value string) error {
	switch {
	case value == "" || len(value) > 256 || !isVisible(value) || strings.Contains(value, ","):
		return errors.New("must be 1 to 256 characters of visible ASCII, without a comma")
	}
	c.control.Key = value
	return nil
}

func isVisible(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' })
}

func toInteger[T int | uint64](low, high int64, field *T) func(string) error {
	return func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("must be an integer from %d to %d", low, high)
		}
		*field = T(n)
		return nil
	}
}

// toFile reads the file that a flag names.
func toFile(field *[]byte, check func(content []byte) error) func(string) error {
	return func(path string) (err error) {
		if *field, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("must be a file that can be read: %w", err)
		}
		return check(*field)
	}
}

func checkReplies(content []byte) error {
	if len(content) == 0 {
		return errors.New("must be a file of scripted replies, and is empty")
	}
	return nil
}

// checkLike tries the findings on a fake, which says what is wrong with them.
func checkLike(content []byte) error {
	fake, err := fakeserver.Open(fakeserver.Like(content))
	if err != nil {
		return fmt.Errorf("must be a file that observe wrote: %w", err)
	}
	return fake.Close()
}

// toPath takes the path of a file to write.
func toPath(field *string) func(string) error {
	return func(value string) error {
		if value == "" {
			return errors.New("must be the path of a file")
		}
		*field = value
		return nil
	}
}

// toOptions takes what read can read.
func toOptions(read func(string) ([]fakeserver.Option, error), field *string) func(string) error {
	return func(value string) error {
		*field = value
		_, err := read(value)
		return err
	}
}

func toOneOf(allowed []string, field *string) func(string) error {
	return func(value string) error {
		if !slices.Contains(allowed, value) {
			return errors.New("must be one of " + strings.Join(allowed, ", "))
		}
		*field = value
		return nil
	}
}

func toDuration(field *time.Duration) func(string) error {
	return func(value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d > time.Hour || d%time.Millisecond != 0 {
			return errors.New("must be whole milliseconds from 0s to 1h, such as 250ms or 1.5s")
		}
		*field = d
		return nil
	}
}

func toBool(field *bool) func(string) error {
	return func(value string) (err error) {
		if *field, err = strconv.ParseBool(value); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	}
}
