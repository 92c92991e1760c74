package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/internal/udp"
)

// What finds no room in the receive buffer while no worker reads is dropped by the
// system, and shown as soon as one reads again: every datagram is accounted for.
func TestKernelDropsAreShown(t *testing.T) {
	key := newKey(t, apikey.AuthAES, 7)
	log, logger := newLog()
	s, err := New(Config{
		Listen: []string{"127.0.0.1:0"}, Workers: 1, ReceiveBuffer: ReceiveBuffer{time.Millisecond, 1}, Admin: "127.0.0.1:0",
		Tenants: []Tenant{{Keys: []apikey.Key{key}}}, Logger: logger, Clock: patientClock{systemClock{origin: time.Now()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, key, s.Addrs()[0])
	const sent = 8 * leastHeld
	for range sent { // no key, no tenant
		if _, err := c.conn.WriteToUDPAddrPort(make([]byte, 1200), c.to); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	defer func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	log.await(t, "msg=serving", 1)
	w := s.listeners[0].workers[0]
	eventually(t, "what was held is read", func() bool { return w.received.Load() > 0 && !w.conn.Pending() })
	c.acquire(checkout(1)) // the first that comes in afterwards tells of the loss
	_, text := get(t, &running{Server: s, log: log}, "/metrics")
	shown := func(name, labels string) int {
		t.Helper()
		m := regexp.MustCompile(fmt.Sprintf(`(?m)^weir_%s\{%s\} (\d+)$`, name, regexp.QuoteMeta(labels))).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the scrape has no %s{%s}:\n%s", name, labels, strings.Join(regexp.MustCompile(`(?m)^weir_.*listen.*$`).FindAllString(text, -1), "\n"))
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	worker := fmt.Sprintf(`listen="%v",worker="0"`, s.Addrs()[0])
	dropped, read := shown("kernel_drops_total", worker), shown("worker_datagrams_total", worker)
	if dropped < sent/2 || dropped+read != sent+1 {
		t.Errorf("of %d datagrams %d were read and %d dropped by the system", sent+1, read, dropped)
	}
	if n := shown("receive_buffer_bytes", worker); n != udp.ReadBufferFor(leastHeld) {
		t.Errorf("a receive buffer of %d bytes is shown, want %d", n, udp.ReadBufferFor(leastHeld))
	}
	if n := shown("dropped_datagrams_total", `reason="envelope",tenant=""`); n != read-1 {
		t.Errorf("%d of %d are dropped as envelope", n, read)
	}
}
