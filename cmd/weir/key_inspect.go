package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/weirhq/weir/apikey"
)

type keyInspectCmd struct {
	KeyFile string `type:"path" placeholder:"FILE" help:"Read the key from this file, which the world must not be able to read, instead of standard input."`
	JSON    bool   `help:"Print one JSON object."`
}

// Help is the command's long help.
func (*keyInspectCmd) Help() string {
	return `Shown are format, mode, key ID and quotas. Both formats are read.

    weir key inspect < shop.key
    weir key inspect --key-file shop.key --json
    printenv WEIR_KEY | weir key inspect`
}

// Run reads and shows the key.
func (c *keyInspectCmd) Run(std *stdio) error {
	text, from, err := c.text(std)
	if err != nil {
		return err
	}
	key, err := apikey.ParseAny(text)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if c.JSON {
		return inspectJSON(std.out, key)
	}
	return inspectText(std.out, key)
}

func (c *keyInspectCmd) text(std *stdio) (text, from string, err error) {
	if c.KeyFile != "" {
		text, err = readKeyFile(c.KeyFile)
		return text, c.KeyFile, err
	}
	text, err = readKey(std.in)
	if err != nil {
		return "", "", fmt.Errorf("standard input: %w", err)
	}
	return text, "standard input", nil
}

func inspectText(w io.Writer, key apikey.Key) error {
	format := "1"
	if key.Legacy() {
		format = "legacy, for clients older than August 2026"
	}
	auth := key.Auth().String()
	if warning := authWarning(key.Auth()); warning != "" {
		auth += " (" + warning + ")"
	}
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// The tabwriter keeps its first error for Flush.
	fmt.Fprintf(lines, "format\t%s\n", format)
	fmt.Fprintf(lines, "auth\t%s\n", auth)
	fmt.Fprintf(lines, "key-id\t%d\n", key.ID())
	quota := key.Quotas()
	for _, q := range quotas {
		fmt.Fprintf(lines, "%s\t%s\n", q.name, formatQuota(*q.field(&quota), q.unit))
	}
	return lines.Flush()
}

// keyJSON has the names of the protocol. The key ID is a string, because many
// JSON readers lose digits of 64-bit numbers.
type keyJSON struct {
	Format            string `json:"format"`
	Auth              string `json:"auth"`
	KeyID             string `json:"key_id"`
	RateBuckets       uint32 `json:"rate_buckets_max"`
	LatencyServices   uint32 `json:"latency_services_max"`
	MetricsLabels     uint32 `json:"metrics_labels_max"`
	LatencyBufferSize uint32 `json:"latency_buffer_size_max"`
	DedupTTL          uint32 `json:"dedup_ttl_ms_max"`
	RateWindow        uint32 `json:"rate_window_size_ms_max"`
}

func inspectJSON(w io.Writer, key apikey.Key) error {
	format := "1"
	if key.Legacy() {
		format = "legacy"
	}
	q := key.Quotas()
	return json.NewEncoder(w).Encode(keyJSON{
		Format:            format,
		Auth:              key.Auth().String(),
		KeyID:             strconv.FormatUint(key.ID(), 10),
		RateBuckets:       q.RateBuckets,
		LatencyServices:   q.LatencyServices,
		MetricsLabels:     q.MetricsLabels,
		LatencyBufferSize: q.LatencyBufferSize,
		DedupTTL:          q.DedupTTL,
		RateWindow:        q.RateWindow,
	})
}
