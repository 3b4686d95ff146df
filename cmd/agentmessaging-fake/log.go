package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// logForms are the values of --log. auto means text if standard error is a terminal, and
// JSON otherwise.
var logForms = []string{"auto", "text", "json", "off"}

// newLog returns the function that writes a line for each call, or nil for none. A line
// holds no key and no text of a message, because fakeserver.Call prints neither. The
// client waits until the line is written, so a slow standard error slows calls.
func newLog(form string, out io.Writer) func(fakeserver.Call) {
	// A program reads a file or a pipe, a person a terminal.
	if form == "auto" {
		form = "json"
		if isTerminal(out) {
			form = "text"
		}
	}
	switch form {
	case "off":
		return nil
	// Times are in the local time zone, for a person.
	case "text":
		logger := log.New(out, "", 0) // writes one line at a time
		return func(c fakeserver.Call) { logger.Print(c.Time.Local().Format("15:04:05.000 "), c) }
	}
	handler := slog.NewJSONHandler(out, nil)
	return func(c fakeserver.Call) { _ = handler.Handle(context.Background(), logRecord(c)) }
}

// logRecord returns a record whose message is the line of the text form. Its attributes
// have the fields for programs. Its time is by the fake's clock, as in the control
// interface.
func logRecord(c fakeserver.Call) slog.Record {
	record := slog.NewRecord(c.Time, slog.LevelInfo, c.String(), 0)
	record.AddAttrs(
		slog.Int("seq", c.Seq), slog.String("trace_id", c.TraceID), slog.String("method", c.Method), slog.String("path", c.Path),
		slog.String("key", c.Key), slog.Int("status", c.Sent.Status), slog.Int64("took_ms", int64(c.Took/time.Millisecond)),
	)
	// Few calls have these attributes. Empty ones are left out.
	for _, attr := range []slog.Attr{slog.String("broke", c.Sent.Broke), slog.String("limit_key", c.LimitKey), slog.String("fault", c.Fault)} {
		if attr.Value.String() != "" {
			record.AddAttrs(attr)
		}
	}
	return record
}

// isTerminal reports whether a person may read the output as it is written. It also
// reports true for /dev/null, which nobody reads.
func isTerminal(out io.Writer) bool {
	file, _ := out.(*os.File)
	info, err := file.Stat() // an error for a nil file
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
