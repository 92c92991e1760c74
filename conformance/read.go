package conformance

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/policy"
)

//go:embed data/keys.json data/policies.json data/traces
var data embed.FS

// Traces returns every trace, in the order of the files' names. The error is that of
// [ReadTraces].
func Traces() ([]Trace, error) {
	entries, err := data.ReadDir("data/traces")
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	var all []Trace
	for _, e := range entries {
		b, err := data.ReadFile(path.Join("data/traces", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("conformance: %w", err)
		}
		traces, err := ReadTraces(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		all = append(all, traces...)
	}
	return all, nil
}

// Policies returns every policy case. The error is that of [ReadPolicies].
func Policies() ([]PolicyCase, error) {
	b, err := data.ReadFile("data/policies.json")
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	return ReadPolicies(b)
}

// ReadTraces reads a file of traces, a JSON array. Unknown fields are errors, and so
// is a trace that no client could play: the error names it.
func ReadTraces(b []byte) ([]Trace, error) {
	var traces []Trace
	if err := strict(b, &traces); err != nil {
		return nil, err
	}
	for i := range traces {
		if err := traces[i].Check(); err != nil {
			return nil, fmt.Errorf("conformance: trace %d, %q: %w", i, traces[i].Name, err)
		}
	}
	return traces, nil
}

// ReadPolicies reads a file of policy cases, a JSON array. Unknown fields are errors.
func ReadPolicies(b []byte) ([]PolicyCase, error) {
	var cases []PolicyCase
	if err := strict(b, &cases); err != nil {
		return nil, err
	}
	for i := range cases {
		if cases[i].Name == "" {
			return nil, fmt.Errorf("conformance: policy case %d has no name", i)
		}
		if (cases[i].Fault == "") != (cases[i].Horizon > 0) {
			return nil, fmt.Errorf("conformance: policy case %q has a fault and a horizon, or neither", cases[i].Name)
		}
		if err := cases[i].Policy.checkNeeds(cases[i].Needs); err != nil {
			return nil, fmt.Errorf("conformance: policy case %q: %w", cases[i].Name, err)
		}
	}
	return cases, nil
}

// checkNeeds refuses a policy that a client may not know of without saying so.
func (n Numbers) checkNeeds(needs []string) error {
	if n.DeliveryDelay != 0 && !slices.Contains(needs, NeedDeliveryDelay) {
		return fmt.Errorf("the policy has a delay, and needs does not have %q", NeedDeliveryDelay)
	}
	return nil
}

func strict(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("conformance: no JSON of this schema: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("conformance: something follows the JSON value")
	}
	return nil
}

func asFieldError(err error, to **policy.FieldError) bool { return errors.As(err, to) }

// Check says what makes a trace unplayable, or nil.
func (t *Trace) Check() error {
	if t.Name == "" {
		return errors.New("it has no name")
	}
	if !slices.Contains([]string{"any", "aes", "cookie", "none"}, t.Auth) {
		return fmt.Errorf("auth %q is none of any, aes, cookie, none", t.Auth)
	}
	if t.Layout != 1 && t.Layout != 2 {
		return fmt.Errorf("layout %d is neither 1 nor 2", t.Layout)
	}
	if _, err := t.Policy.Policy(); err != nil {
		return err
	}
	if err := t.Policy.checkNeeds(t.Needs); err != nil {
		return err
	}
	for i, s := range t.Servers {
		if _, err := strconv.ParseUint(s.ID, 10, 64); err != nil {
			return fmt.Errorf("server %q: %q is no server ID in decimal", s.Name, s.ID)
		}
		if s.Name == "" || t.Server(s.Name) != &t.Servers[i] || s.Addresses < 0 || s.Addresses > 2 {
			return fmt.Errorf("server %q: it is there twice, has no name, or neither one address nor two", s.Name)
		}
	}
	var last int64
	known := map[string]bool{}
	for i := range t.Events {
		e := &t.Events[i]
		if e.At < last {
			return fmt.Errorf("event %d comes before the one above it", i)
		}
		last = e.At
		if err := t.checkEvent(e, known); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return t.checkServers(t.Members)
}

// checkEvent checks one event, given the requests and reports before it.
func (t *Trace) checkEvent(e *Event, known map[string]bool) error {
	kinds := 0
	for _, set := range []bool{
		e.Submit != nil, e.Report != nil, e.Answer != nil, e.Members != nil, e.DNS != nil,
		e.Send != nil, e.Decide != nil, e.Fail != nil,
	} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("it is %d things", kinds)
	}
	begin := func(id string) error {
		if id == "" || known[id] || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' }) {
			return fmt.Errorf("%q is used before, or is no name", id)
		}
		known[id] = true
		return nil
	}
	end := func(id string) error {
		if !known[id] {
			return fmt.Errorf("no request or report is called %q", id)
		}
		return nil
	}
	switch {
	case e.Submit != nil:
		return begin(e.Submit.ID)
	case e.Report != nil:
		return begin(e.Report.ID)
	case e.Answer != nil:
		return errors.Join(end(e.Answer.Of), t.checkServers([]string{e.Answer.From}), checkDamage(e.Answer.Damage),
			t.checkOptional(e.Answer.Via), checkAnswerLayout(e.Answer.Layout))
	case e.Members != nil:
		return t.checkServers(e.Members.Servers)
	case e.DNS != nil:
		return t.checkZone(e.DNS)
	case e.Send != nil:
		return errors.Join(end(e.Send.Request+e.Send.Report), t.checkServers([]string{e.Send.To}))
	case e.Decide != nil:
		return errors.Join(end(e.Decide.Request), t.checkOptional(e.Decide.By))
	case e.Fail != nil:
		return end(e.Fail.Request)
	}
	return nil
}

func (t *Trace) checkZone(z *Zone) error {
	if z.TTL < 0 || z.TTL > math.MaxInt32 {
		return fmt.Errorf("a TTL of %d s", z.TTL)
	}
	for _, r := range z.Records {
		if err := t.checkServers([]string{r.At}); err != nil {
			return err
		}
		for _, text := range r.Addresses {
			if _, err := netip.ParseAddr(text); err != nil {
				return fmt.Errorf("target %q: %w", r.Label, err)
			}
		}
	}
	return nil
}

func (t *Trace) checkOptional(name string) error {
	if name == "" {
		return nil
	}
	return t.checkServers([]string{name})
}

func (t *Trace) checkServers(names []string) error {
	for _, n := range names {
		if t.Server(n) == nil {
			return fmt.Errorf("no server is called %q", n)
		}
	}
	return nil
}

// Server returns a server by name, or nil.
func (t *Trace) Server(name string) *Server {
	i := slices.IndexFunc(t.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Servers[i]
}

func checkAnswerLayout(l int) error {
	if l < 0 || l > 2 {
		return fmt.Errorf("an answer in layout %d", l)
	}
	return nil
}

func checkDamage(word string) error {
	if word != "" && !slices.Contains(Damages(), word) {
		return fmt.Errorf("damage %q is none of %s", word, strings.Join(Damages(), ", "))
	}
	return nil
}

// Damages returns the words of [Answer].Damage.
func Damages() []string {
	return []string{
		"flip-last-byte", "cut", "longer", "reflected", "other-mode", "other-key", "other-identity", "a-report", "empty", "noise",
	}
}
