package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/conformance"
)

// CheckKey has the key parser of this module read a key, and says what it gets wrong.
func CheckKey(c *conformance.KeyCase) error {
	k, err := apikey.ParseAny(c.Key)
	switch {
	case c.Fields == nil && err == nil:
		return fmt.Errorf("it is taken, although: %s", c.Fault)
	case c.Fields == nil:
		return nil
	case err != nil:
		return fmt.Errorf("it is refused: %w", err)
	}
	if what := c.Fields.Differs(conformance.KeyFieldsOf(k)); what != "" {
		return fmt.Errorf("it is read as one with %s", what)
	}
	_, err = apikey.Parse(c.Key)
	switch {
	case c.Legacy && err == nil:
		return errors.New("it is taken where no legacy key was asked for")
	case !c.Legacy && err != nil:
		return fmt.Errorf("it is refused where no legacy key was asked for: %w", err)
	}
	return nil
}

// KeyCaseName is under which name a key case is played.
func KeyCaseName(c *conformance.KeyCase) string {
	return "key-vectors/" + strings.ReplaceAll(c.Name, "_", "-")
}

// vectorCase is a key of the data. What is to be refused is so when a client is made,
// which everybody can; what is in a key only some can tell.
func vectorCase(k *conformance.KeyCase) testCase {
	name := KeyCaseName(k)
	c := testCase{
		name: name, about: "The key holds what it says.", section: secKeys, auth: "any", layout: 2, scale: 1,
		setUp: func(*conformance.Command) {},
	}
	if k.Fields == nil {
		c.about, c.refused, c.fields = "The key is none: "+k.Fault+".", true, []string{"key"}
		c.setUp = func(command *conformance.Command) { command.Key, command.Legacy = k.Key, true }
	} else {
		c.needs, c.auth, c.key = []string{conformance.NeedParseKey}, k.Fields.Auth, k
	}
	c.trace = frame(name, c.about, secKeys, usual)
	return c
}

// playKey asks what is in a key.
func (c *testCase) playKey(ctx context.Context, p *play, client Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.greet(ctx, client); err != nil {
		return err
	}
	if err := p.tell(conformance.Command{Cmd: "parse_key", Key: c.key.Key, Legacy: c.key.Legacy}); err != nil {
		return err
	}
	reply, err := p.expect(ctx, "parsed")
	if err != nil {
		return err
	}
	if what := c.key.Fields.Differs(reply.Key); what != "" {
		p.in.fail("key", secKeys, fmt.Sprintf("mode %s, ID %s, its secret, and the quotas %v", c.key.Fields.Auth, c.key.Fields.ID, c.key.Fields.Quotas), "%s", what)
	}
	if !c.key.Legacy {
		return nil
	}
	if err := p.tell(conformance.Command{Cmd: "parse_key", Key: c.key.Key}); err != nil {
		return err
	}
	_, err = p.expect(ctx, "refused")
	return err
}
