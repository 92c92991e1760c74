package scenario

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/yamlfile"
	"github.com/weirhq/weir/sim"
)

func (d *decoder) buckets(n *yaml.Node, s *sim.Scenario) error {
	return d.named(n, "buckets", func(name, settings *yaml.Node) error {
		at := fmt.Sprintf("Buckets[%d]", len(s.Buckets))
		d.mark(at, name)
		b := sim.Bucket{Name: name.Value}
		if isText(settings) {
			if err := d.limit(at, &b, settings); err != nil {
				return err
			}
			s.Buckets = append(s.Buckets, b)
			return nil
		}
		if err := d.mapping(settings, "a bucket", d.bucketFields(at, &b)); err != nil {
			return err
		}
		if b.Window == 0 && !d.marked(at+".Window") {
			return yamlfile.At(name, "the bucket has no window; write `limit: 100/s`, or `limit: 100` and `window: 1s`")
		}
		s.Buckets = append(s.Buckets, b)
		return nil
	})
}

func (d *decoder) bucketFields(at string, b *sim.Bucket) []field {
	return []field{
		{"limit", func(n *yaml.Node) error {
			if v, err := count[uint32](0, 1<<32-1)(n, "limit"); err == nil {
				b.Limit = v
				d.mark(at+".Limit", n)
				return nil
			}
			return d.limit(at, b, n)
		}},
		{"window", func(n *yaml.Node) (err error) {
			if d.marked(at + ".Window") {
				return yamlfile.At(n, "`limit` says the window already; write `limit: %d`, or leave `window` out", b.Limit)
			}
			d.mark(at+".Window", n)
			b.Window, err = duration(n, "window")
			return err
		}},
		value(d, "count", at+".Count", &b.Count, count[int](1, 1<<20)),
		value(d, "zipf", at+".Zipf", &b.Zipf, exponent),
	}
}

// limit reads a limit and its window, "100/s".
func (d *decoder) limit(at string, b *sim.Bucket, n *yaml.Node) error {
	s, err := yamlfile.Text(n, "limit")
	if err != nil {
		return err
	}
	if d.marked(at + ".Window") {
		return yamlfile.At(n, "`window` is given already; write the number of tokens alone, or leave `window` out")
	}
	many, window, ok := perWindow(s)
	if !ok {
		return yamlfile.At(n, "a limit must be tokens in a window, such as 100/s, 30/m or 100/250ms, not %q", s)
	}
	d.mark(at+".Limit", n)
	d.mark(at+".Window", n)
	b.Limit, b.Window = many, window
	return nil
}

func (d *decoder) trackers(n *yaml.Node, s *sim.Scenario) error {
	return d.named(n, "trackers", func(name, settings *yaml.Node) error {
		at := fmt.Sprintf("Trackers[%d]", len(s.Trackers))
		d.mark(at, name)
		t := sim.Tracker{Name: name.Value, TTL: 10 * time.Second, MaxSamples: 32, MinSamples: 1}
		if err := d.settings(settings, "a tracker", d.trackerFields(at, &t)); err != nil {
			return err
		}
		s.Trackers = append(s.Trackers, t)
		return nil
	})
}

func (d *decoder) trackerFields(at string, t *sim.Tracker) []field {
	return []field{
		value(d, "ttl", at+".TTL", &t.TTL, duration),
		value(d, "max_samples", at+".MaxSamples", &t.MaxSamples, count[uint32](1, 1<<32-1)),
		value(d, "min_samples", at+".MinSamples", &t.MinSamples, count[uint32](0, 1<<32-1)),
	}
}

func (d *decoder) services(n *yaml.Node, s *sim.Scenario) error {
	return d.named(n, "services", func(name, settings *yaml.Node) error {
		at := fmt.Sprintf("Services[%d]", len(s.Services))
		d.mark(at, name)
		w := sim.Service{Name: name.Value}
		if err := d.settings(settings, "a service", d.serviceFields(at, &w)); err != nil {
			return err
		}
		s.Services = append(s.Services, w)
		return nil
	})
}

func (d *decoder) serviceFields(at string, w *sim.Service) []field {
	return []field{
		value(d, "parallel", at+".Parallel", &w.Parallel, countOr(1, 1<<20, "unlimited", -1)),
		value(d, "time", at+".Time", &w.Time, d.dist),
		value(d, "tracker", at+".Tracker", &w.Tracker, text),
		value(d, "sample", at+".Sample", &w.Sample, countOr(1, 1<<20, "none", -1)),
		value(d, "queue", at+".Queue", &w.Queue, countOr(1, 1<<20, "unlimited", 0)),
	}
}

// settings decodes the fields of a named thing; none is as good as an empty mapping.
func (d *decoder) settings(n *yaml.Node, what string, fields []field) error {
	if isNull(n) {
		return nil
	}
	return d.mapping(n, what, fields)
}

func (d *decoder) dnsFields(dns *sim.DNS) []field {
	return []field{
		value(d, "ttl", "DNS.TTL", &dns.TTL, duration),
		value(d, "delay", "DNS.Delay", &dns.Delay, d.dist),
		value(d, "join", "DNS.Join", &dns.Join, orNever),
		value(d, "leave", "DNS.Leave", &dns.Leave, orNever),
		value(d, "propagation", "DNS.Propagation", &dns.Propagation, d.dist),
		{"members", func(n *yaml.Node) (err error) {
			dns.Members, err = d.texts(n, "members", "DNS.Members")
			return err
		}},
	}
}

// texts reads a list of texts, which is not nil.
func (d *decoder) texts(n *yaml.Node, what, path string) ([]string, error) {
	d.mark(path, n)
	list := []string{}
	err := d.list(n, what, func(i int, n *yaml.Node) error {
		s, err := text(n, what)
		d.mark(fmt.Sprintf("%s[%d]", path, i), n)
		list = append(list, s)
		return err
	})
	return list, err
}
