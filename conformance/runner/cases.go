package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
	"github.com/weirhq/weir/internal/udp"
)

// A testCase is one thing to find out about a client.
type testCase struct {
	name, about, section string
	needs                []string
	auth                 string // that it needs, "any" for none in particular
	layout               int
	scale                int64
	trace                *conformance.Trace
	// setUp is a case that is over when the client is made, or not.
	setUp func(*conformance.Command)
	// refused says that the configuration is to be refused, naming one of fields if it
	// names any.
	refused bool
	fields  []string
	// key is one of which the client is asked what is in it, instead of being made.
	key *conformance.KeyCase
	// once is a case that looks at the first datagram only.
	once bool
}

// allCases returns every case that can be played in real time.
func allCases() ([]testCase, error) {
	traces, err := conformance.Traces()
	if err != nil {
		return nil, err
	}
	policies, err := conformance.Policies()
	if err != nil {
		return nil, err
	}
	keys, err := conformance.Keys()
	if err != nil {
		return nil, err
	}
	cases := keyCases()
	for i := range keys {
		cases = append(cases, vectorCase(&keys[i]))
	}
	for i := range policies {
		cases = append(cases, policyCase(&policies[i]))
	}
	for i := range traces {
		t := &traces[i]
		if scale, ok := stretch(t); ok {
			cases = append(cases, testCase{
				name: t.Name, about: t.About, section: t.Section, needs: t.Needs, auth: t.Auth, layout: t.Layout, scale: scale, trace: t,
			})
		}
	}
	return cases, nil
}

// frame is the trace of a case that is about how a client is made.
func frame(name, about, section string, p conformance.Numbers) *conformance.Trace {
	return &conformance.Trace{
		Name: name, About: about, Section: section, Auth: "any", Layout: 2, Policy: p,
		Servers: []conformance.Server{{Name: "A", ID: serverID(0)}}, Members: []string{"A"},
	}
}

var usual = conformance.Numbers{
	Unit: int64(200 * time.Millisecond), Replays: 1, Gap: "fixed:1", Preference: "list:1,0", Final: 1, CompletionDelivery: true,
}

// keyCases are keys that a client must take, and such that it must refuse.
func keyCases() []testCase {
	var cases []testCase
	add := func(name, about string, refused bool, change func(*conformance.Command)) {
		t := frame("keys/"+name, about, secKeys, usual)
		cases = append(cases, testCase{
			name: t.Name, about: about, section: secKeys, auth: "any", layout: 2, scale: 1, trace: t,
			setUp: change, refused: refused, fields: []string{"key"},
		})
	}
	edit := func(f func(string) string) func(*conformance.Command) {
		return func(c *conformance.Command) { c.Key = f(c.Key) }
	}
	last := func(k string) (head, char string) { return k[:len(k)-1], k[len(k)-1:] }
	add("upper-case", "A key in upper case is the same key.", false, edit(strings.ToUpper))
	add("mixed-case", "A key that mixes cases is none.", true, edit(func(k string) string {
		return strings.ToUpper(k[:4]) + k[4:]
	}))
	add("bad-checksum", "The checksum finds a character that was changed.", true, edit(func(k string) string {
		head, char := last(k)
		if char == "q" {
			return head + "p"
		}
		return head + "q"
	}))
	add("cut", "A key that was cut short is none.", true, edit(func(k string) string { head, _ := last(k); return head }))
	add("blank-behind", "Nothing stands around a key, blanks included.", true, edit(func(k string) string { return k + " " }))
	add("nothing-in-it", "A prefix alone is no key.", true, edit(func(k string) string { return k[:strings.LastIndexByte(k, '1')+1] }))
	add("other-prefix", "The prefix names the mode, and is part of the checksum.", true, edit(func(k string) string {
		return "rl-ookie" + k[strings.LastIndexByte(k, '1'):]
	}))
	legacy := func(accept bool) func(*conformance.Command) {
		return func(c *conformance.Command) {
			q := apikey.DefaultQuotas()
			q.DedupTTL = maxDedupTTL
			k, err := apikey.NewLegacy(apikey.AuthCookie, keyID, q, rand.Reader)
			if err == nil {
				c.Key, c.Legacy = k.Encode(), accept
			}
		}
	}
	add("legacy-on-request", "A key of the legacy format is taken where that was asked for.", false, legacy(true))
	add("legacy-unasked", "A key of the legacy format is refused where it was not asked for.", true, legacy(false))
	for i := range cases[len(cases)-2:] {
		cases[len(cases)-2+i].auth = "cookie"
	}
	return cases
}

// policyCase makes a client with a policy. One with a fault, or a horizon above the
// key's quota, is to be refused; of the others that last long enough, the first
// datagram tells the horizon.
func policyCase(p *conformance.PolicyCase) testCase {
	const shortest, most = 20, 1000
	about := "The policy is taken as it is; its horizon is " + time.Duration(p.Horizon).String() + "."
	c := testCase{section: secFields, needs: p.Needs, auth: "any", layout: 2, scale: 1, name: "policy/" + p.Name}
	switch {
	case p.Fault != "":
		about, c.refused, c.fields = "The policy is an error, in its "+p.Fault+".", true, []string{p.Fault}
	case p.DedupTTL > maxDedupTTL:
		about, c.refused, c.fields = "The horizon is above the key's quota of 2 s.", true, []string{"horizon", "policy", "key"}
	case p.DedupTTL >= shortest && p.Policy.Replays <= most:
		c.once = true
	}
	c.about = about
	c.trace = frame(c.name, about, secFields, p.Policy)
	c.setUp = func(*conformance.Command) {}
	if c.once {
		c.trace.Events = []conformance.Event{{Submit: &conformance.Submit{
			ID: "r", Resources: []conformance.Resource{{Bucket: "checkout", Window: 1000, Limit: 100, Tokens: 1}},
		}}}
	}
	return c
}

// playSetUp plays a case that is about how a client is made.
func (c *testCase) playSetUp(ctx context.Context, p *play, client Client, command conformance.Command) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.greet(ctx, client); err != nil {
		return err
	}
	c.setUp(&command)
	if err := p.tell(command); err != nil {
		return err
	}
	if !c.refused {
		if _, err := p.expect(ctx, "ready"); err != nil || !c.once {
			return err
		}
		return c.playOnce(ctx, p)
	}
	reply, err := p.expect(ctx, "refused")
	if err == nil && reply.Field != "" && !slices.Contains(c.fields, reply.Field) {
		p.in.fail("refusal", c.section, "the field at fault: "+strings.Join(c.fields, " or "), "%q, %s", reply.Field, reply.Text)
	}
	return err
}

// playOnce submits one request and looks at the first datagram of it.
func (c *testCase) playOnce(ctx context.Context, p *play) error {
	p.began = time.Now()
	p.plan(&p.trace.Events[0])
	if err := p.todo[0].do(); err != nil {
		return err
	}
	patience := time.NewTimer(helloWithin)
	defer patience.Stop()
	for {
		select {
		case d := <-p.world.packets:
			p.receive(&d)
			return nil
		case l := <-p.lines:
			if err := p.hear(l); err != nil {
				return err
			}
		case <-patience.C:
			p.in.fail("fan-out", secRounds, "a datagram to A", "none for %v", helloWithin)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// attempt plays a case once and returns what was found, and how late the machine
// was at worst.
func (c *testCase) attempt(ctx context.Context, stack udp.Stack, start func(context.Context) (Client, error), auth apikey.Auth, sameBytes bool) (found []Finding, late time.Duration, err error) {
	scale := c.scale
	t := c.trace
	wide := *t
	if c.setUp != nil { // the policy may be one that cannot be compiled
		wide.Policy = usual
		t = &wide
	}
	p, key, err := newPlay(stack, t, scale, auth, sameBytes)
	if err != nil {
		return nil, 0, err
	}
	defer p.world.close()
	command := p.configure(key)
	if c.setUp != nil {
		command.Policy = &c.trace.Policy
		if q, err := c.trace.Policy.Policy(); err == nil {
			if line, err := q.Compile(); err == nil {
				p.in.dedup = line.HorizonMs()
			}
		}
	}
	client, err := start(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer client.End()
	pulse := startPulse()
	switch {
	case c.key != nil:
		err = c.playKey(ctx, p, client)
	case c.setUp != nil:
		err = c.playSetUp(ctx, p, client, command)
	default:
		err = p.run(ctx, client, command)
	}
	late = max(pulse.stop(), p.late)
	if errors.Is(err, errGone) {
		err = nil
	}
	return p.in.found, late, err
}

// mustBeSaid are needs that clients are taken to lack unless they say otherwise.
var mustBeSaid = []string{conformance.NeedDeliveryDelay, conformance.NeedParseKey}

// fits says why a client cannot be asked a case, or "".
func (c *testCase) fits(hello *conformance.Reply) string {
	if c.auth != "any" && !slices.Contains(hello.Auth, c.auth) {
		return "it does not speak mode " + c.auth
	}
	if !slices.Contains(hello.Layouts, c.layout) {
		return fmt.Sprintf("it does not speak layout %d", c.layout)
	}
	for _, n := range c.needs {
		if slices.Contains(mustBeSaid, n) && !slices.Contains(hello.Has, n) {
			return "its hello does not have " + n
		}
		if slices.Contains(hello.Lacks, n) {
			return "it lacks " + n
		}
	}
	return ""
}

// mode is the mode in which a case is played.
func (c *testCase) mode(hello *conformance.Reply) (apikey.Auth, error) {
	if c.auth != "any" {
		return apikey.ParseAuth(c.auth)
	}
	for _, m := range []string{"aes", "cookie", "none"} {
		if slices.Contains(hello.Auth, m) {
			return apikey.ParseAuth(m)
		}
	}
	return 0, errors.New("its hello names no mode of authentication")
}
