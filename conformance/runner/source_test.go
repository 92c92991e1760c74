package runner

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/policy"
)

// The source of the traces is text: the core's transcripts, as far as they speak of
// what can be seen from outside a client, and conformance/source, which is written
// in the same words (core/testdata/README.md) and some more:
//
//	name WORD          names the trace; else it is counted
//	section TEXT       where the rule is written
//	real               times are not to be scaled
//	T dns ttl=N [fails] SERVER LABEL=SERVER SERVER/port-zero SERVER=ADDRESS,…
//	response … via=SERVER
//	report NAME N
//	BUCKET/WINDOW/LIMIT as a block, where a name's bytes may be written as %00
type source struct {
	trace  conformance.Trace
	output []string // of a transcript, behind its ----
}

// errForeign says that a transcript is about something that only a Go program that
// embeds the core can see.
var errForeign = errors.New("no trace for others")

// readSources returns the traces of one text file, with inputs alone.
func readSources(t *testing.T, path, group, section string) []source {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []source
	about := ""
	number := 0
	for _, block := range strings.Split(string(b), "\n\n") {
		head, output, _ := strings.Cut(block, "\n----\n")
		var comment []string
		lines := strings.Split(strings.TrimSpace(head), "\n")
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			comment = append(comment, strings.TrimSpace(strings.TrimPrefix(lines[0], "#")))
			lines = lines[1:]
		}
		if len(comment) > 0 {
			about = strings.Join(comment, " ")
		}
		if len(lines) == 0 || lines[0] != "trace" {
			continue
		}
		number++
		s := source{output: strings.Split(strings.TrimRight(output, "\n"), "\n")}
		s.trace = conformance.Trace{
			Name: fmt.Sprintf("%s/%02d", group, number), About: about, Section: section, Auth: "any", Layout: 2,
			Policy: conformance.NumbersOf(policy.Default()),
		}
		err := parseTrace(&s.trace, group, lines[1:])
		switch {
		case errors.Is(err, errForeign):
		case err != nil:
			t.Fatalf("%s: trace %d: %v", path, number, err)
		default:
			all = append(all, s)
		}
	}
	return all
}

func parseTrace(tr *conformance.Trace, group string, lines []string) error {
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		d, err := time.ParseDuration(words[0])
		if err != nil {
			if err := parseSetting(tr, group, words[0], words[1:]); err != nil {
				return err
			}
			continue
		}
		e, err := parseEvent(tr, words[1], words[2:])
		if err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		if e != nil {
			e.At = int64(d)
			tr.Events = append(tr.Events, *e)
		}
	}
	tr.Needs = needs(tr)
	for i := range tr.Events {
		// A broken tag is broken content in the other modes, and may be none.
		if a := tr.Events[i].Answer; a != nil && tr.Auth == "any" && (a.Damage == "flip-last-byte" || a.Damage == "other-key") {
			tr.Auth = "aes"
		}
	}
	slices.SortFunc(tr.Servers, func(a, b conformance.Server) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func needs(tr *conformance.Trace) []string {
	found := map[string]bool{}
	for i := range tr.Events {
		e := &tr.Events[i]
		found["reports"] = found["reports"] || e.Report != nil
		found["refresh"] = found["refresh"] || e.DNS != nil && e.At > 0
		found["steering"] = found["steering"] || e.Answer != nil && e.Answer.ChangePort
	}
	found[conformance.NeedDeliveryDelay] = tr.Policy.DeliveryDelay != 0
	var all []string
	for _, word := range []string{"reports", "refresh", "steering", conformance.NeedDeliveryDelay} {
		if found[word] {
			all = append(all, word)
		}
	}
	return all
}

func parseSetting(tr *conformance.Trace, group, name string, args []string) error {
	switch name {
	case "name":
		tr.Name = group + "/" + args[0]
	case "section":
		tr.Section = strings.Join(args, " ")
	case "real":
		tr.Real = true
	case "policy":
		p, err := policy.Parse(strings.Join(args, " "))
		if err != nil {
			return err
		}
		tr.Policy = conformance.NumbersOf(p)
	case "auth":
		tr.Auth = args[0]
	case "layout":
		tr.Layout, _ = strconv.Atoi(args[0])
	case "servers":
		for _, word := range args {
			name, addrs, _ := strings.Cut(word, "=")
			addServer(tr, name, 1+strings.Count(addrs, ","))
			tr.Members = append(tr.Members, name)
		}
	default:
		return errForeign
	}
	return nil
}

func addServer(tr *conformance.Trace, name string, addresses int) {
	if tr.Server(name) != nil {
		return
	}
	s := conformance.Server{Name: name, ID: serverID(int(name[0] - 'A'))}
	if addresses > 1 {
		s.Addresses = addresses
	}
	tr.Servers = append(tr.Servers, s)
}

func parseEvent(tr *conformance.Trace, verb string, args []string) (*conformance.Event, error) {
	switch verb {
	case "submit":
		return parseSubmit(tr, args)
	case "response":
		a, err := parseAnswer(tr, args)
		return &conformance.Event{Answer: a}, err
	case "noise":
		last := ""
		for i := range tr.Events {
			if tr.Events[i].Submit != nil {
				last = tr.Events[i].Submit.ID
			}
		}
		return &conformance.Event{Answer: &conformance.Answer{From: tr.Members[0], Of: last, Damage: "noise"}}, nil
	case "report":
		if len(args) != 2 {
			return nil, errForeign
		}
		n, err := strconv.Atoi(args[1])
		r := &conformance.Report{ID: args[0]}
		for i := range n {
			r.Observations = append(r.Observations, conformance.Observation{
				Tracker: "inventory", TTL: 10_000, MaxSamples: 100, BufferSize: bufferOf(tr), MinSamples: 5, Latency: uint32(i),
			})
		}
		return &conformance.Event{Report: r}, err
	case "membership":
		m := &conformance.Members{Servers: []string{}}
		for _, word := range args {
			name, addrs, _ := strings.Cut(word, "=")
			if s := tr.Server(name); s != nil && (addrs != "" || s.Addresses > 1) {
				return nil, errForeign // it moves, which a server of a trace does not
			}
			addServer(tr, name, 1+strings.Count(addrs, ","))
			m.Servers = append(m.Servers, name)
		}
		return &conformance.Event{Members: m}, nil
	case "dns":
		z, err := parseZone(tr, args)
		return &conformance.Event{DNS: z}, err
	case "deadline", "wait":
		return nil, nil
	}
	return nil, errForeign
}

// bufferOf is the buffer size of trackers in a trace: part of the identity in
// layout 1, nothing in layout 2.
func bufferOf(tr *conformance.Trace) uint32 {
	if tr.Layout == 1 {
		return 32
	}
	return 0
}

func parseSubmit(tr *conformance.Trace, args []string) (*conformance.Event, error) {
	s := &conformance.Submit{ID: args[0]}
	words := args[1:]
	if len(words) == 0 {
		words = []string{"checkout"}
	}
	if words[0] != "nothing" {
		blocks, err := parseBlocks(tr, words)
		if err != nil {
			return nil, err
		}
		for i := range blocks.Guards {
			s.Guards = append(s.Guards, blocks.Guards[i].Guard)
		}
		for i := range blocks.Resources {
			s.Resources = append(s.Resources, blocks.Resources[i].Resource)
		}
	}
	return &conformance.Event{Submit: s}, nil
}

func parseBlocks(tr *conformance.Trace, words []string) (*conformance.Blocks, error) {
	blocks := &conformance.Blocks{}
	for _, word := range words {
		name, text, given := strings.Cut(word, ":")
		var n uint64
		var err error
		if given {
			if n, err = strconv.ParseUint(text, 10, 32); err != nil {
				return nil, err
			}
		}
		if kind, text, given := strings.Cut(name, "@"); kind == "guard" {
			threshold := uint64(100)
			if given {
				if threshold, err = strconv.ParseUint(text, 10, 32); err != nil {
					return nil, err
				}
			}
			blocks.Guards = append(blocks.Guards, conformance.GuardAnswer{Guard: conformance.Guard{
				Tracker: "inventory", TTL: 10_000, MaxSamples: 100, BufferSize: bufferOf(tr), MinSamples: 5, Threshold: uint32(threshold),
			}, Latency: uint32(n)})
			continue
		}
		r := conformance.ResourceAnswer{Resource: conformance.Resource{Window: 1000, Limit: 100, Tokens: 1}, Deficit: uint16(n)}
		if text, more, given := strings.Cut(name, "/"); given {
			if _, err := fmt.Sscanf(more, "%d/%d", &r.Window, &r.Limit); err != nil {
				return nil, err
			}
			name = text
		}
		if r.Bucket, err = url.PathUnescape(name); err != nil {
			return nil, err
		}
		blocks.Resources = append(blocks.Resources, r)
	}
	return blocks, nil
}

func parseAnswer(tr *conformance.Trace, args []string) (*conformance.Answer, error) {
	a := &conformance.Answer{From: args[0], Of: args[1]}
	addServer(tr, a.From, 1) // a stranger, if it is new
	for _, word := range args[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "reject":
			a.Deficit = 1
		case "change-port":
			a.ChangePort = true
		case "latency":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return nil, err
			}
			a.Latency = uint32(n)
		case "via":
			a.Via = value
		case "layout":
			a.Layout, _ = strconv.Atoi(value)
		case "blocks":
			var err error
			if a.Blocks, err = parseBlocks(tr, strings.Split(value, ",")); err != nil {
				return nil, err
			}
		case "bad-tag":
			a.Damage = "flip-last-byte"
		default:
			if !slices.Contains(conformance.Damages(), name) {
				return nil, errForeign
			}
			a.Damage = name
		}
	}
	return a, nil
}

func parseZone(tr *conformance.Trace, args []string) (*conformance.Zone, error) {
	z := &conformance.Zone{Records: []conformance.Target{}}
	for _, word := range args {
		name, value, given := strings.Cut(word, "=")
		switch {
		case name == "ttl":
			z.TTL, _ = strconv.Atoi(value)
		case word == "fails":
			z.Fails = true
		case len(name) == 1 && given: // a server with other addresses
			addServer(tr, name, 1)
			z.Records = append(z.Records, conformance.Target{Label: "s-" + tr.Server(name).ID, At: name, Addresses: strings.Split(value, ",")})
		case given: // a label that leads to a server
			addServer(tr, value, 1)
			z.Records = append(z.Records, conformance.Target{Label: name, At: value})
		default:
			name, zero := strings.CutSuffix(name, "/port-zero")
			addServer(tr, name, 1)
			z.Records = append(z.Records, conformance.Target{Label: "s-" + tr.Server(name).ID, At: name, PortZero: zero})
		}
	}
	return z, nil
}

func sourceFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	return files
}
