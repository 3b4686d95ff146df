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
func setAddr(c *config, value string) error {
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

func setHosts(c *config, value string) error {
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

func setToken(c *config, value string) error {
	if value != "" && (len(value) < 16 || len(value) > 256 || !isVisible(value)) {
		return errors.New("must be 16 to 256 characters of visible ASCII")
	}
	c.control.Token = value
	return nil
}

func setKey(c *config, value string) error {
	switch {
	case value == "":
		return nil
	case len(value) > 256 || !isVisible(value) || strings.Contains(value, ","):
		return errors.New("must be 1 to 256 characters of visible ASCII, without a comma")
	case strings.HasPrefix(value, "amk_world_"):
		return errors.New("must not begin with amk_world_, as the keys of other worlds do")
	}
	c.control.Key = value
	return nil
}

func isVisible(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' })
}

func setSeed(c *config, value string) error {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n > 1<<53-1 {
		return errors.New("must be an integer from 0 to 9007199254740991")
	}
	c.control.Seed = n
	return nil
}

func setCalls(c *config, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1_000_000 {
		return errors.New("must be an integer from 1 to 1000000")
	}
	c.control.Calls = n
	return nil
}

func setReplies(c *config, value string) (err error) {
	if value == "" {
		return nil
	}
	if c.control.Replies, err = os.ReadFile(value); err != nil {
		return fmt.Errorf("must be a file that can be read: %w", err)
	}
	if len(c.control.Replies) == 0 {
		return errors.New("must be a file of scripted replies, and is empty")
	}
	return nil
}

// setLike tries the findings on a fake, which says what is wrong with them.
func setLike(c *config, value string) (err error) {
	if value == "" {
		return nil
	}
	if c.control.Like, err = os.ReadFile(value); err != nil {
		return fmt.Errorf("must be a file that can be read: %w", err)
	}
	fake, err := fakeserver.Open(fakeserver.Like(c.control.Like))
	if err != nil {
		return fmt.Errorf("must be a file that observe wrote: %w", err)
	}
	return fake.Close()
}

func setPath(field func(*config) *string) func(*config, string) error {
	return func(c *config, value string) error { *field(c) = value; return nil }
}

func oneOf(allowed []string, field func(*config) *string) func(*config, string) error {
	return func(c *config, value string) error {
		if !slices.Contains(allowed, value) {
			return errors.New("must be one of " + strings.Join(allowed, ", "))
		}
		*field(c) = value
		return nil
	}
}

func toDuration(field func(*config) *time.Duration) func(*config, string) error {
	return func(c *config, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d > time.Hour || d%time.Millisecond != 0 {
			return errors.New("must be whole milliseconds from 0s to 1h, such as 250ms or 1.5s")
		}
		*field(c) = d
		return nil
	}
}

func toBool(field func(*config) *bool) func(*config, string) error {
	return func(c *config, value string) error {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return errors.New("must be true or false")
		}
		*field(c) = b
		return nil
	}
}
