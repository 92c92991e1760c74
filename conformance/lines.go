package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the length in bytes of the longest line of the protocol, either way.
const MaxLine = 1 << 16

// A Command is one line to a client under test: a JSON object. Exactly the fields
// of its kind are set; README.md has an example of each.
type Command struct {
	Cmd string `json:"cmd"` // "configure", "submit", "report", "quit" or "parse_key"

	// Of configure, the first two of parse_key too.
	Key        string   `json:"key,omitempty"`
	Legacy     bool     `json:"legacy,omitempty"` // accept a key of the legacy format
	Domain     string   `json:"domain,omitempty"`
	Nameserver string   `json:"nameserver,omitempty"` // ip:port, over UDP
	Policy     *Numbers `json:"policy,omitempty"`
	Layout     int      `json:"layout,omitempty"`

	// Of submit and report.
	ID           string        `json:"id,omitempty"`
	Guards       []Guard       `json:"guards,omitempty"`
	Resources    []Resource    `json:"resources,omitempty"`
	Label        string        `json:"label,omitempty"`
	Observations []Observation `json:"observations,omitempty"`
}

// MarshalJSON writes a key that is empty, too, where a command has one: a client is
// to be asked for that.
func (c Command) MarshalJSON() ([]byte, error) {
	type fields Command
	if c.Cmd != "configure" && c.Cmd != "parse_key" {
		return json.Marshal(fields(c))
	}
	return json.Marshal(struct {
		fields
		Key string `json:"key"`
	}{fields(c), c.Key})
}

// A Reply is one line from a client under test: a JSON object.
type Reply struct {
	Event string `json:"event"` // "hello", "ready", "refused", "parsed", "decided", "failed", "reported" or "error"

	// Of hello.
	Name    string   `json:"name,omitempty"`
	Auth    []string `json:"auth,omitempty"`    // the modes that it speaks
	Layouts []int    `json:"layouts,omitempty"` // the layouts that it speaks
	Lacks   []string `json:"lacks,omitempty"`   // of what a trace may need
	Has     []string `json:"has,omitempty"`     // of what clients are taken to lack: [NeedDeliveryDelay], [NeedParseKey]

	// Of refused.
	Field string `json:"field,omitempty"` // "key", or the policy's field at fault; may be empty

	// Of parsed.
	Key *KeyFields `json:"key,omitempty"`

	// Of decided, failed and reported.
	ID        string           `json:"id,omitempty"`
	Granted   bool             `json:"granted,omitempty"`
	Server    string           `json:"server,omitempty"` // who decided, its ID in decimal; empty or "0" for nobody
	Guards    []GuardResult    `json:"guards,omitempty"`
	Resources []ResourceResult `json:"resources,omitempty"`
	Reason    string           `json:"reason,omitempty"` // "timeout", "no_servers" or "other"

	Text string `json:"text,omitempty"` // of refused, failed and error: for people
}

// GuardResult is what a client says of a guard, in the request's order.
type GuardResult struct {
	Latency uint32 `json:"latency_ms"`
	Passed  bool   `json:"passed"`
}

// ResourceResult is what a client says of a resource, in the request's order.
type ResourceResult struct {
	Deficit uint16 `json:"deficit"`
}

// ParseReply reads a line of a client under test, without its line end. Fields that
// it does not know are ignored; an event that it does not know is an error.
func ParseReply(line []byte) (Reply, error) {
	var r Reply
	if err := parseLine(line, &r); err != nil {
		return Reply{}, err
	}
	switch r.Event {
	case "hello", "ready", "refused", "error":
		return r, nil
	case "parsed":
		if r.Key == nil {
			return Reply{}, errors.New("conformance: event \"parsed\" has no key")
		}
		return r, nil
	case "decided", "failed", "reported":
		if r.ID == "" {
			return Reply{}, fmt.Errorf("conformance: event %q has no id", r.Event)
		}
		return r, nil
	}
	return Reply{}, fmt.Errorf("conformance: unknown event %.40q", r.Event)
}

// ParseCommand reads a line to a client under test, without its line end. Fields
// that it does not know are ignored; a command that it does not know is an error.
func ParseCommand(line []byte) (Command, error) {
	var c Command
	if err := parseLine(line, &c); err != nil {
		return Command{}, err
	}
	switch c.Cmd {
	case "configure":
		if c.Policy == nil {
			return Command{}, errors.New("conformance: configure has no policy")
		}
		return c, nil
	case "submit", "report":
		if c.ID == "" {
			return Command{}, fmt.Errorf("conformance: command %q has no id", c.Cmd)
		}
		return c, nil
	case "quit", "parse_key":
		return c, nil
	}
	return Command{}, fmt.Errorf("conformance: unknown command %.40q", c.Cmd)
}

// WriteLine writes a command or reply as one line, in one write.
func WriteLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	return nil
}

func parseLine(line []byte, to any) error {
	if len(line) > MaxLine {
		return fmt.Errorf("conformance: a line of %d bytes is longer than %d", len(line), MaxLine)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("conformance: the line is no JSON object of the protocol: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("conformance: something follows the JSON object in the line")
	}
	return nil
}
