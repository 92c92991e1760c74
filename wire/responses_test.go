package wire

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/vectors"
)

// errQuestion is what the test's own client says of a response that is well formed and authentic
// but answers another question, or comes from a stranger.
var errQuestion = errors.New("does not answer the question")

// judge does with a response what a client does: with this package as far as it goes, then by
// comparing it with the question as simply as possible.
func judge(t *testing.T, c *Credential, v *vectors.Response, view *ResponseView) (Envelope, []byte, error) {
	t.Helper()
	var q RequestView
	asked, pdu, err := open(c, v.Request)
	if err == nil {
		err = ParseRequest(pdu, &q)
	}
	if err != nil {
		t.Fatalf("the request: %v", err)
	}
	if q.Guards() > 0 && q.Layout != Layout(v.Layout) {
		t.Fatalf("the request is read as %v", q.Layout)
	}
	e, pdu, err := open(c, v.Response)
	if err != nil {
		return e, nil, err
	}
	if err := ParseResponse(pdu, q.Layout, view); err != nil {
		return e, nil, err
	}
	if !slices.Contains(v.Members, e.Header.KeyID) || e.Header.UniqueID != asked.Header.UniqueID ||
		!slices.Equal(blockIDs(&q.blocks), blockIDs(&view.blocks)) {
		return e, nil, errQuestion
	}
	return e, pdu, nil
}

// blockIDs lists the guards' and the resources' IDs in sorted order.
func blockIDs(b *blocks) []string {
	var ids []string
	for i := range b.Guards() {
		ids = append(ids, "guard "+b.Guard(i).Tracker.String())
	}
	for i := range b.Resources() {
		ids = append(ids, "resource "+b.Resource(i).Bucket.String())
	}
	slices.Sort(ids)
	return ids
}

func TestResponsesAreAcceptedOrRefused(t *testing.T) {
	for _, v := range vectors.Responses(t) {
		t.Run(v.Case, func(t *testing.T) {
			c := credentialFor(t, v.Key)
			var view ResponseView
			e, pdu, err := judge(t, c, &v, &view)
			if !v.Accept {
				if want := refusal(t, &v); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", v.Reason, err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(v.Case, "flipped_") && !bytes.Equal(pdu, v.PDU) {
				t.Errorf("PDU\n%x, want\n%x", pdu, v.PDU)
			}
			checkDecision(t, &v, &e, &view)
		})
	}
}

// refusal tells which error a response that is not accepted must meet.
func refusal(t *testing.T, v *vectors.Response) error {
	t.Helper()
	switch v.Reason {
	case "another mode than the key's":
		return ErrMode
	case "wrong cookie":
		if strings.HasSuffix(v.Case, "/none") {
			return ErrMode // a key in none mode takes no cookie, whatever it says
		}
		return ErrAuth
	case "GCM tag", "GCM nonce changed", "last byte changed", "tenant TLV is AAD", "tenant TLV is AAD / unknown server":
		return ErrAuth
	case "truncated":
		if strings.HasPrefix(v.Case, "cut_last_") && strings.HasSuffix(v.Case, "/aes") {
			return ErrAuth // the frame is whole, the ciphertext is not
		}
		return ErrMalformed
	case "tenant TLV type", "PDU type", "PDU size beyond the datagram", "PDU size too small for its counts":
		return ErrMalformed
	case "guards in the other layout":
		return ErrMalformed
	case "server id is not in the SRV set", "server echoed the tenant key id instead of its own id",
		"unique id matches no request in flight", "an ID that was not asked",
		"answers none of what was asked", "one block fewer than asked", "one block more than asked":
		return errQuestion
	}
	t.Fatalf("unknown reason %q", v.Reason)
	return nil
}

// checkDecision compares what a response says with the decision that it must lead to.
func checkDecision(t *testing.T, v *vectors.Response, e *Envelope, view *ResponseView) {
	t.Helper()
	d := &v.Decision
	if e.Header.KeyID != d.Server || (e.Header.Steering != 0) != d.KeepPort {
		t.Errorf("server %d, steering %d, want %d, %v", e.Header.KeyID, e.Header.Steering, d.Server, d.KeepPort)
	}
	if view.Guards() != len(d.Guards) || view.Resources() != len(d.Resources) {
		t.Fatalf("%d guards, %d resources, want %d, %d", view.Guards(), view.Resources(), len(d.Guards), len(d.Resources))
	}
	granted := true
	for i, want := range d.Guards {
		got := view.Guard(i)
		if got.Tracker != ident.ID(want.ID) || got.Threshold != want.Threshold || got.Latency != want.Latency {
			t.Errorf("guard %d: %+v, want %+v", i, got, want)
		}
		// No vector holds a threshold that was raised, so the response's own decides here.
		if (got.Latency < got.Threshold) != want.Passed {
			t.Errorf("guard %d: latency %d, threshold %d, passed must be %v", i, got.Latency, got.Threshold, want.Passed)
		}
		granted = granted && want.Passed
	}
	for i, want := range d.Resources {
		got := view.Resource(i)
		if got.Bucket != ident.ID(want.ID) || got.Tokens != want.Deficit || got.Rate != want.Rate {
			t.Errorf("resource %d: %+v, want %+v", i, got, want)
		}
		granted = granted && want.Deficit == 0
	}
	if granted != d.Granted {
		t.Errorf("granted %v, want %v", granted, d.Granted)
	}
}
