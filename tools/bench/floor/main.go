// Command floor answers messages as a mux with encoding/json does: what the
// fake's program is compared with.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/agents/{agent_id}/messages", func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			Text string `json:"text"`
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"reply_text": "You wrote: " + message.Text, "trace_id": "trace_000001"})
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	panic(http.Serve(listener, mux))
}
