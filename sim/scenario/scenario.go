package scenario

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/policy"
	"github.com/weirhq/weir/sim"
	"github.com/weirhq/weir/wire"
)

// A File is what a scenario file says.
type File struct {
	Scenario *sim.Scenario
	// Variants are the scenario with some of its fields changed, in the file's order. Each is
	// named "scenario/variant".
	Variants []*sim.Scenario
}

// Parse reads a scenario. open returns the content of a file beside it, a recorded
// distribution or trace; nil means that there is none. The error has a line and a column
// where a place is at fault. The scenario is valid.
func Parse(data []byte, open func(name string) ([]byte, error)) (*sim.Scenario, error) {
	f, err := ParseFile(data, open)
	if err != nil {
		return nil, err
	}
	return f.Scenario, nil
}

// ParseFile is [Parse], with the variants. All of them are valid.
func ParseFile(data []byte, open func(name string) ([]byte, error)) (*File, error) {
	root, err := yamlfile.Parse(data)
	if err != nil {
		return nil, err
	}
	base, variants, err := split(root)
	if err != nil {
		return nil, err
	}
	f := new(File)
	if f.Scenario, err = decode(base, open); err != nil {
		return nil, err
	}
	for _, v := range variants {
		s, err := decode(v.root, open)
		if err != nil {
			return nil, fmt.Errorf("%w (in the variant %s)", err, v.name)
		}
		s.Name = variantName(s.Name, v.name)
		f.Variants = append(f.Variants, s)
	}
	return f, nil
}

// variantName names a variant. The scenario has no name yet if the file says none.
func variantName(scenario, variant string) string { return scenario + "/" + variant }

// setName names a scenario, and its variants, for which the file says no name.
func (f *File) setName(name string) {
	if f.Scenario.Name != "" {
		return
	}
	f.Scenario.Name = name
	for _, v := range f.Variants {
		v.Name = name + v.Name
	}
}

func decode(root *yaml.Node, open func(name string) ([]byte, error)) (*sim.Scenario, error) {
	d := &decoder{open: open, marks: map[string]mark{"": {node: root}}}
	s := &sim.Scenario{Length: 10 * time.Second, Policy: policy.Default()}
	if err := d.mapping(root, "the file", d.fileFields(s)); err != nil {
		return nil, err
	}
	if len(s.Servers) == 0 {
		if err := d.numberedServers(defaultServers, &s.Servers); err != nil {
			return nil, err
		}
	}
	if len(s.Clients) == 0 {
		return nil, yamlfile.At(root, "there are no clients; write `clients: {web: {poisson: 100/s, ask: …}}`")
	}
	if err := s.Validate(); err != nil {
		return nil, d.place(s, err)
	}
	return s, nil
}

// fileFields are the fields of a file.
func (d *decoder) fileFields(s *sim.Scenario) []field {
	return []field{
		value(d, "name", "Name", &s.Name, text),
		value(d, "purpose", "Purpose", &s.Purpose, sentence),
		value(d, "length", "Length", &s.Length, duration),
		value(d, "warmup", "Warmup", &s.Warmup, duration),
		value(d, "policy", "Policy", &s.Policy, requestPolicy),
		{"fail_fast", func(n *yaml.Node) error { return d.mapping(n, "`fail_fast`", d.failFastFields(s)) }},
		{"refresh", func(n *yaml.Node) error { return d.mapping(n, "`refresh`", d.refreshFields(s)) }},
		value(d, "layout", "Layout", &s.Layout, oneOf([]string{"2", "1"}, []wire.Layout{wire.Layout2, wire.Layout1})),
		value(d, "auth", "Auth", &s.Auth, oneOf([]string{"none", "cookie", "aes"}, []apikey.Auth{apikey.AuthNone, apikey.AuthCookie, apikey.AuthAES})),
		{"quotas", func(n *yaml.Node) error {
			d.mark("Quotas", n)
			s.Quotas = apikey.DefaultQuotas()
			return d.mapping(n, "`quotas`", d.quotaFields(s))
		}},
		{"buckets", func(n *yaml.Node) error { return d.buckets(n, s) }},
		{"trackers", func(n *yaml.Node) error { return d.trackers(n, s) }},
		{"servers", func(n *yaml.Node) error { return d.servers(n, s) }},
		{"clients", func(n *yaml.Node) error { return d.clients(n, s) }},
		{"network", func(n *yaml.Node) error { return d.network(n, s) }},
		{"dns", func(n *yaml.Node) error {
			d.mark("DNS", n)
			return d.mapping(n, "`dns`", d.dnsFields(&s.DNS))
		}},
		{"services", func(n *yaml.Node) error { return d.services(n, s) }},
		{"faults", func(n *yaml.Node) error { return d.faults(n, s) }},
		{"variants", func(n *yaml.Node) error {
			return yamlfile.At(n, "`variants` is there twice; remove one") // split has taken the first out
		}},
	}
}

func (d *decoder) failFastFields(s *sim.Scenario) []field {
	return []field{
		value(d, "timeouts", "FailFast.Timeouts", &s.FailFast.Timeouts, count[int](0, 1<<30)),
		value(d, "probe", "FailFast.Probe", &s.FailFast.Probe, duration),
	}
}

func (d *decoder) refreshFields(s *sim.Scenario) []field {
	r := &s.Refresh
	return []field{
		value(d, "interval", "Refresh.Interval", &r.Interval, duration),
		value(d, "min", "Refresh.Min", &r.Min, duration),
		value(d, "forced", "Refresh.Forced", &r.Forced, duration),
		value(d, "backoff", "Refresh.Backoff", &r.Backoff, duration),
		value(d, "backoff_max", "Refresh.BackoffMax", &r.BackoffMax, duration),
		value(d, "timeout", "Refresh.Timeout", &r.Timeout, duration),
		value(d, "grace", "Refresh.Grace", &r.Grace, duration),
	}
}

func (d *decoder) quotaFields(s *sim.Scenario) []field {
	q := &s.Quotas
	return []field{
		value(d, "rate_buckets", "Quotas.RateBuckets", &q.RateBuckets, count[uint32](0, 1<<32-1)),
		value(d, "latency_services", "Quotas.LatencyServices", &q.LatencyServices, count[uint32](0, 1<<32-1)),
		value(d, "latency_buffer_size", "Quotas.LatencyBufferSize", &q.LatencyBufferSize, count[uint32](0, 1<<32-1)),
		value(d, "dedup_ttl", "Quotas.DedupTTL", &q.DedupTTL, milliseconds),
		value(d, "rate_window", "Quotas.RateWindow", &q.RateWindow, milliseconds),
	}
}
