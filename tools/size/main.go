// Command size posts JSON and reads JSON with the standard library: what a
// program holds anyway that speaks to some service. With the tag imports it imports
// this module besides, and with calls it calls every method of a client.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

type message struct {
	Text string `json:"text"`
}

// use is what a tag adds.
var use func(context.Context) error

func main() {
	ctx := context.Background()
	err := run(ctx)
	if use != nil {
		err = errors.Join(err, use(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body, err := json.Marshal(message{"Hello"})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("BASE_URL"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var reply message
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return err
	}
	fmt.Println(reply.Text)
	return nil
}
