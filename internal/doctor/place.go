package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/discovery"
)

// place says in words where servers are looked for.
func place(c *weir.Config) string {
	switch {
	case c.Zone != "":
		return "zone " + c.Zone
	case c.Domain != "":
		return "domain " + c.Domain
	case c.Hosted:
		return "the hosted service"
	}
	return count(len(c.Servers), "server") + " given"
}

// domain is where SRV records are looked for, "" if servers were given.
func domain(c *weir.Config) string {
	switch {
	case c.Zone != "":
		return discovery.Domain(c.Zone, c.Key.ID())
	case c.Hosted:
		return discovery.Domain(discovery.HostedZone, c.Key.ID())
	}
	return strings.TrimSuffix(c.Domain, ".")
}

// reading is another way to understand what was given as a zone or a domain.
type reading struct {
	flag   string
	domain string
}

// readings are the ways to understand the place that was given which lead to
// another name than it does: a zone for a domain, a domain for a zone, the domain
// of another key, and the whole name of the SRV records for either.
func readings(c *weir.Config) []reading {
	given := strings.TrimSuffix(c.Zone+c.Domain, ".")
	if given == "" || c.Hosted {
		return nil
	}
	const service = "_ratelimitly._udp."
	bare := strings.TrimPrefix(given, service)
	as := []reading{{"--domain=" + bare, bare}}
	if zone, _, ok := keyDomain(bare); ok {
		as = append(as, reading{"--zone=" + zone, discovery.Domain(zone, c.Key.ID())})
	}
	as = append(as, reading{"--zone=" + bare, discovery.Domain(bare, c.Key.ID())})
	var others []reading
	seen := map[string]bool{domain(c): true}
	for _, r := range as {
		if !seen[r.domain] && discovery.CheckDomain(r.domain) == nil {
			seen[r.domain] = true
			others = append(others, r)
		}
	}
	return others
}

// keyDomain splits c-<key ID>.<zone>.
func keyDomain(domain string) (zone string, id uint64, ok bool) {
	label, zone, ok := strings.Cut(domain, ".")
	if !ok || len(label) < 3 || !strings.EqualFold(label[:2], "c-") {
		return "", 0, false
	}
	id, err := strconv.ParseUint(label[2:], 10, 64)
	return zone, id, err == nil
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
