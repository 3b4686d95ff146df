// Bare answers two calls of the service with net/http and encoding/json, by
// hand. It keeps nothing, checks nothing and knows no key: less than this no
// fake can do, and what a fake takes beyond it is what its rules cost.
//
//	bare ADDR    serve on this host and port
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type message struct {
	Text string `json:"text"`
}

type reply struct {
	Text     string   `json:"reply_text"`
	Warnings []string `json:"warnings"`
	TraceID  string   `json:"trace_id"`
}

type agent struct {
	ID        string `json:"agent_id"`
	Status    string `json:"status"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	TraceID   string `json:"trace_id"`
}

const (
	traceID = "trace_000001"
	created = "2026-01-02T03:04:05Z"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: bare ADDR")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/agents/{id}/messages", postMessage)
	mux.HandleFunc("GET /v1/agents/{id}", getAgent)
	log.Fatal(http.ListenAndServe(os.Args[1], mux))
}

func postMessage(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	write(w, reply{Text: m.Text, Warnings: []string{}, TraceID: traceID})
}

func getAgent(w http.ResponseWriter, r *http.Request) {
	write(w, agent{ID: r.PathValue("id"), Status: "active", CreatedAt: created, UpdatedAt: created, TraceID: traceID})
}

func write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client has gone; there is nobody to tell
}
