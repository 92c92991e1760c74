package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/wire"
)

// FieldError says what is wrong with a scenario, and where: Field is a path such as
// "Clients[0].Mix[1].Take[0].Bucket".
type FieldError struct {
	Field  string
	Reason string // what is wrong, and what would be right
}

// Error returns "sim: <field>: <reason>".
func (e *FieldError) Error() string { return "sim: " + e.Field + ": " + e.Reason }

func fieldError(field, format string, args ...any) *FieldError {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// Bounds of a scenario.
const (
	maxLength  = 100 * 24 * time.Hour
	maxServers = 64
	maxClients = 1 << 16
	maxCount   = 1 << 20
	maxSkew    = 30 * 24 * time.Hour
	maxAge     = 364 * 24 * time.Hour // what is a year old is the stranger of a FaultStranger
)

// checker looks at a scenario and keeps the first thing that is wrong.
type checker struct {
	s     *Scenario
	wrong *FieldError
}

// Validate reports the first thing that is wrong with the scenario, as a [*FieldError].
func (s *Scenario) Validate() error {
	c := &checker{s: s}
	c.checkRun()
	c.checkBuckets()
	c.checkTrackers()
	c.checkServers()
	c.checkServices()
	c.checkClients()
	c.checkAmount()
	c.checkLinks()
	c.checkDNS()
	c.checkFaults()
	if c.wrong != nil {
		return c.wrong
	}
	return nil
}

// that notes that something has to hold of a field.
func (c *checker) that(ok bool, field, format string, args ...any) {
	if !ok && c.wrong == nil {
		c.wrong = fieldError(field, format, args...)
	}
}

// unseen tells a character that a terminal would obey rather than show, or that would break a log's line.
func unseen(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func (c *checker) checkRun() {
	c.that(!strings.ContainsFunc(c.s.Name, unseen), "Name", "%q has control characters; remove them", c.s.Name)
	c.that(!strings.ContainsFunc(c.s.Purpose, unseen), "Purpose", "%q has control characters; remove them", c.s.Purpose)
	c.that(c.s.Length > 0 && c.s.Length <= maxLength, "Length", "it is above 0 and at most %v", maxLength)
	c.that(c.s.Warmup >= 0 && c.s.Warmup < c.s.Length, "Warmup", "it is from 0 to below the length of %v", c.s.Length)
	c.that(c.s.Auth <= apikey.AuthAES, "Auth", "it is none, cookie or aes")
	c.that(c.s.Layout <= wire.Layout2, "Layout", "it is 1 or 2")
	if _, err := c.s.policy().Compile(); err != nil {
		c.that(false, "Policy", "%v", err)
	}
	if err := c.s.quotas().Validate(); err != nil {
		c.that(false, "Quotas", "%v", err)
	}
}

// checkCore has the core look at what it is given for a group of clients.
func (c *checker) checkCore(group int) {
	if c.wrong != nil {
		return
	}
	key, err := apikey.New(c.s.auth(), 1, c.s.quotas(), newEntropy(0, "key"))
	if err == nil {
		_, err = core.New(c.s.coreConfig(key, group, newEntropy(0, "identities")))
	}
	var field *core.FieldError
	switch {
	case errors.As(err, &field) && field.Field == "MaxInFlight":
		c.that(false, fmt.Sprintf("Clients[%d].MaxInFlight", group), "%s", field.Reason)
	case errors.As(err, &field):
		c.that(false, field.Field, "%s", field.Reason)
	case err != nil:
		c.that(false, "Policy", "%v", err)
	}
}

// name checks a name that others refer to; taken has those before it.
func (c *checker) name(field, name string, taken map[string]bool) {
	c.that(name != "" && !strings.ContainsAny(name, " */") && !strings.ContainsFunc(name, unseen), field,
		"%q is no name: it has no blanks, no * and no /, no control characters, and is not empty", name)
	c.that(!taken[name], field, "there is another %q", name)
	taken[name] = true
}

func (c *checker) dist(field string, d Dist) {
	if err := d.Validate(); err != nil {
		c.that(false, field, "%s", strings.TrimPrefix(err.Error(), "sim: "))
	}
}

func (c *checker) chance(field string, p PerMillion) {
	c.that(p <= million, field, "%d millionths is more than always", p)
}

// between checks that a time is in a range.
func (c *checker) between(field string, d, least, most time.Duration) {
	c.that(d >= least && d <= most, field, "%v is not from %v to %v", d, least, most)
}

// number checks that a number is in a range.
func (c *checker) number(field string, n, least, most int) {
	c.that(n >= least && n <= most, field, "%d is not from %d to %d", n, least, most)
}

// milliseconds checks a time that goes over the wire.
func (c *checker) milliseconds(field string, d, least time.Duration) {
	const most = (1<<32 - 1) * time.Millisecond
	c.that(d >= least && d <= most && d%time.Millisecond == 0, field, "%v is not whole milliseconds from %v to %v", d, least, most)
}
