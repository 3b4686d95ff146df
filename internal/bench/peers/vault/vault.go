// Package vault is the client of HashiCorp Vault: a secret written with KV
// version 2, which is a PUT, and a secret read. They are two secrets, since a
// path has one answer here.
package vault

import (
	"context"
	"net/http"

	"github.com/hashicorp/vault/api"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const version = `{"created_time":"2026-05-01T12:00:00Z","custom_metadata":null,"deletion_time":"","destroyed":false,"version":1}`

// Peer is vault/api.
var Peer = peers.Peer{
	Name: "vault/api", Module: "github.com/hashicorp/vault/api",
	Answers: map[string]string{
		"/v1/secret/data/written": answer(version),
		"/v1/secret/data/read":    answer(`{"data":{"text":"` + service.Text + `"},"metadata":` + version + `}`),
	},
	New: newCalls,
}

// answer is data in what every answer of that API has around it.
func answer(data string) string {
	return `{"request_id":"9d0c8f4e-51a3-4c0b-8a5e-6f2b7c1d3e4f","lease_id":"","renewable":false,"lease_duration":0,"data":` +
		data + `,"wrap_info":null,"warnings":null,"auth":null,"mount_type":"kv"}`
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	peers.Unset("VAULT_") // of its twenty or so, some have no option
	config := api.DefaultConfig()
	config.Address = baseURL
	config.HttpClient.Transport = transport
	client, err := api.NewClient(config)
	if err != nil {
		return peers.Calls{}, err
	}
	client.SetToken(peers.Key)
	secrets := client.KVv2("secret")
	return peers.Calls{
		Post: func(ctx context.Context) error {
			written, err := secrets.Put(ctx, "written", map[string]any{"text": service.Text})
			if err == nil && (written.VersionMetadata == nil || written.VersionMetadata.Version == 0) {
				err = peers.Undecoded("data.version")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			read, err := secrets.Get(ctx, "read")
			if err == nil && read.Data["text"] == nil {
				err = peers.Undecoded("data.data.text")
			}
			return err
		},
	}, nil
}
