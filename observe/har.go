package observe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ReadHAR learns from a HAR 1.2 file, which browsers, proxies and the standalone
// fake write, what a [Watcher] would have learned from the same calls. Calls whose
// key the file does not show count as made by one key.
func ReadHAR(r io.Reader) (*Observation, error) {
	type headers []struct{ Name, Value string }
	var file struct {
		Log struct {
			Entries []struct {
				StartedDateTime time.Time
				Time            float64 // in milliseconds
				Request         struct {
					Method, URL string
					Headers     headers
					PostData    struct{ Text string }
				}
				Response struct {
					Status  int
					Headers headers
					Content struct{ Text, Encoding string }
				}
			}
		}
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return nil, fmt.Errorf("observe: not a HAR file: %w", err)
	}
	w := Watch(nil)
	for _, entry := range file.Log.Entries {
		address, err := url.Parse(entry.Request.URL)
		if err != nil {
			continue
		}
		e, agent, ok := endpointOf(entry.Request.Method, address.EscapedPath())
		if !ok || entry.Response.Status == 0 || entry.Response.Content.Encoding != "" {
			continue
		}
		p := passing{sent: entry.Request.PostData.Text, at: entry.StartedDateTime.Add(time.Duration(entry.Time * float64(time.Millisecond)))}
		p.Endpoint, p.Status, p.Header, p.Body = e, entry.Response.Status, http.Header{}, []byte(entry.Response.Content.Text)
		for _, h := range entry.Response.Headers {
			p.Header.Add(h.Name, h.Value)
		}
		for _, h := range entry.Request.Headers {
			if strings.EqualFold(h.Name, "Authorization") {
				p.key = w.number(h.Value)
			}
		}
		if agent != "" {
			p.agent = w.number(agent)
		}
		w.look(p)
	}
	return w.Observation(), nil
}
