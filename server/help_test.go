package server

import (
	"bytes"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/limiter"
	"github.com/weirhq/weir/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTime is the wall clock of tests that need a fixed one, in Unix ms. The tenants of
// newWorker come then; a second later it is time for the datagrams of newClient.
const testTime = 1_800_000_000_000

var peer = netip.MustParseAddrPort("192.0.2.1:50000")

// fakeClock is a Clock that stands until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now limiter.Time
}

func newFakeClock() *fakeClock { return &fakeClock{now: limiter.Time{Mono: 1, Wall: testTime}} }

func (c *fakeClock) Now() limiter.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// advance moves both readings.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Mono += int64(d)
	c.now.Wall += uint64(d.Milliseconds())
}

// entropy returns a source that is the same in every run. Sources of different seeds
// differ.
func entropy(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// newKey issues a key of default quotas.
func newKey(tb testing.TB, auth apikey.Auth, id uint64, change ...func(*apikey.Quotas)) apikey.Key {
	tb.Helper()
	q := apikey.DefaultQuotas()
	for _, f := range change {
		f(&q)
	}
	k, err := apikey.New(auth, id, q, entropy(byte(id)))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// writeFile writes a file that only its owner can read, by renaming it into place.
func writeFile(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
}

func tempFile(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "tenants.yaml")
	writeFile(tb, path, text)
	return path
}

// client builds datagrams of one key, as a real client would.
type client struct {
	tb         testing.TB
	credential *wire.Credential
	sealer     *wire.Sealer
	header     wire.Header // of the next datagram
}

func newClient(tb testing.TB, k apikey.Key) *client {
	tb.Helper()
	c, err := wire.NewCredential(k)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := wire.NewSealer(entropy(200))
	if err != nil {
		tb.Fatal(err)
	}
	return &client{tb: tb, credential: c, sealer: s, header: wire.Header{KeyID: k.ID(), Timestamp: testTime + 1000}}
}

// next gives the client's next datagrams another identity.
func (c *client) next() {
	for i := range c.header.UniqueID {
		c.header.UniqueID[i]++
		if c.header.UniqueID[i] != 0 {
			return
		}
	}
}

func (c *client) request(r *wire.Request) []byte {
	c.tb.Helper()
	b, err := c.credential.AppendRequest(nil, c.sealer, &c.header, r)
	if err != nil {
		c.tb.Fatal(err)
	}
	return b
}

func (c *client) report(obs ...wire.Observation) []byte {
	c.tb.Helper()
	b, err := c.credential.AppendReport(nil, c.sealer, &c.header, wire.Layout2, obs)
	if err != nil {
		c.tb.Fatal(err)
	}
	return b
}

// reply is an answer, opened.
type reply struct {
	header wire.Header
	view   wire.ResponseView
}

// open reads an answer as the client of the key does.
func (c *client) open(b []byte, l wire.Layout) reply {
	c.tb.Helper()
	var e wire.Envelope
	if err := wire.ParseEnvelope(b, &e); err != nil {
		c.tb.Fatal(err)
	}
	pdu, err := c.credential.Open(&e, new(wire.Scratch))
	if err != nil {
		c.tb.Fatal(err)
	}
	r := reply{header: e.Header}
	if err := wire.ParseResponse(pdu, l, &r.view); err != nil {
		c.tb.Fatal(err)
	}
	return r
}

// granted judges an answer to a request whose guards have thresholds above 0.
func (r *reply) granted() bool {
	for i := range r.view.Resources() {
		if r.view.Resource(i).Tokens != 0 {
			return false
		}
	}
	for i := range r.view.Guards() {
		if g := r.view.Guard(i); g.Latency >= g.Threshold {
			return false
		}
	}
	return true
}

// eventually waits until something holds that is about to.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatalf("it never holds that %s", what)
		}
	}
}

// logBuffer takes a server's log and lets a test wait for a line.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed at the next write
}

func newLog() (*logBuffer, *slog.Logger) {
	b := &logBuffer{more: make(chan struct{})}
	return b, slog.New(slog.NewTextHandler(b, nil))
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.more)
	b.more = make(chan struct{})
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await waits until the log holds a text n times.
func (b *logBuffer) await(tb testing.TB, text string, n int) {
	tb.Helper()
	for {
		b.mu.Lock()
		more, count := b.more, strings.Count(b.text.String(), text)
		b.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-more:
		case <-tb.Context().Done():
			tb.Fatalf("the log never said %q; it is:\n%s", text, b)
		case <-time.After(20 * time.Second):
			tb.Fatalf("the log does not say %q %d times; it is:\n%s", text, n, b)
		}
	}
}
