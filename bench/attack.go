package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/internal/children"
	"github.com/weirhq/weir/internal/udp"
	"github.com/weirhq/weir/wire"
)

// attackCommand is the command of a child that attacks until its standard input ends. It is another
// process, so that its goroutines are not in the way of those that measure, and has the least
// priority: an attacker of one's own has a machine of its own.
const attackCommand = "attack"

// most resources that a datagram holds in AES mode.
const mostResources = 39

// kinds are the attacks: what each datagram is.
var kinds = []struct {
	name    string
	limited bool // by the tenant with a max_rate
	make    func(a *attacker) ([]byte, error)
}{
	{"buckets", false, func(a *attacker) ([]byte, error) {
		for i := range a.resources {
			n := a.number*mostResources + uint64(i)
			var id ident.ID
			binary.LittleEndian.PutUint64(id[:], n)
			a.resources[i] = wire.Resource{Bucket: id, Window: 60_000, Rate: 10, Tokens: 1}
		}
		return a.request(a.resources, 300)
	}},
	{"largest", false, func(a *attacker) ([]byte, error) { // rejected, so that there is always work
		for i := range a.resources {
			a.resources[i] = wire.Resource{Bucket: ident.ID{byte(i)}, Window: 1000, Rate: 1, Tokens: 2}
		}
		return a.request(a.resources, 300)
	}},
	{"junk", false, func(a *attacker) ([]byte, error) { // a key ID that is known, a fresh stamp, a broken tag
		b, err := a.request(nil, 300)
		if err == nil {
			b[56] ^= 1
		}
		return b, err
	}},
	{"over-quota", false, func(a *attacker) ([]byte, error) { return a.request(nil, math.MaxUint32) }},
	{"empty", false, func(a *attacker) ([]byte, error) { return a.request(nil, 300) }},
	{"max-rate", true, func(a *attacker) ([]byte, error) { return a.request(nil, 300) }},
}

// job is what a child is to do, on its standard input.
type job struct {
	Addr string
	Key  string
	Kind string
	Rate float64 // datagrams a second, 0 for as many as can be

	Buckets uint64        // filling: how many
	Window  time.Duration // of each
}

type attacker struct {
	job        job
	credential *wire.Credential
	sealer     *wire.Sealer
	number     uint64
	resources  []wire.Resource
	buf        []byte
}

// flood starts a child that floods until it is stopped.
func (t *target) flood(j job) (stop func(), err error) {
	child, err := flood(t.family, j)
	if err != nil {
		return nil, err
	}
	return child.End, nil
}

// flood starts a child that does a job until it is stopped, or has done it.
func flood(family *children.Family, j job) (*children.Talk, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child, err := family.Talk(os.Stderr, self, attackCommand)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err == nil {
		_, err = fmt.Fprintf(child, "%s\n", text)
	}
	line := ""
	if err == nil {
		line, err = bufio.NewReader(child).ReadString('\n') // it says nothing after that
	}
	if err == nil && strings.TrimSpace(line) != "ready" {
		err = fmt.Errorf("the attacker says %q", line)
	}
	if err == nil {
		_, err = fmt.Fprintln(child, "go")
	}
	if err != nil {
		child.End()
		return nil, fmt.Errorf("starting the attacker: %w", err)
	}
	return child, nil
}

// attack is the child: a job, "go", and the end of its input.
func attack(_ context.Context, _ []string) error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return err
	}
	key, err := apikey.Parse(j.Key)
	if err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(j.Addr)
	if err != nil {
		return err
	}
	a := &attacker{job: j, resources: make([]wire.Resource, mostResources)}
	if a.credential, err = wire.NewCredential(key); err != nil {
		return err
	}
	if a.sealer, err = wire.NewSealer(rand.Reader); err != nil {
		return err
	}
	if j.Kind != filling {
		leastPriority()
	}
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop.Store(true)
	}()
	switch j.Kind {
	case honest:
		return a.flood(&stop, to, j.Rate, (*attacker).decision)
	case filling:
		return a.flood(&stop, to, j.Rate, (*attacker).fillNext)
	}
	for _, k := range kinds {
		if k.name == j.Kind {
			return a.flood(&stop, to, j.Rate, k.make)
		}
	}
	return fmt.Errorf("no attack %q", j.Kind)
}

// flood sends in batches, each flow in turn, until it is told to stop, or build says io.EOF. What a socket does
// not take is not sent again.
func (a *attacker) flood(stop *atomic.Bool, to netip.AddrPort, rate float64, build func(*attacker) ([]byte, error)) error {
	const flows, batch = 8, 32
	var conns [flows]udp.Conn // open until the process ends, which is when this returns
	for i := range conns {
		var err error
		conns[i], err = udp.Host().Listen(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0), udp.Options{})
		if err != nil {
			return err
		}
	}
	ds := make([]udp.Datagram, batch)
	for i := range ds {
		ds[i] = udp.Datagram{Buf: make([]byte, 0, wire.BufferSize), Peer: to}
	}
	start, sent, over := time.Now(), 0, false
	for round := 0; !stop.Load() && !over; round++ {
		due := batch
		if rate > 0 {
			if due = min(batch, int(rate*time.Since(start).Seconds())-sent); due <= 0 {
				time.Sleep(200 * time.Microsecond)
				continue
			}
		}
		for i := range ds[:due] {
			a.buf = ds[i].Buf[:0]
			b, err := build(a)
			if errors.Is(err, io.EOF) {
				due, over = i, true
				break
			}
			if err != nil {
				return err
			}
			ds[i].Buf, ds[i].N = b, len(b)
		}
		sent += due
		if due == 0 {
			break
		}
		if _, err := conns[round%flows].Write(ds[:due]); udp.Closed(err) {
			return err
		}
	}
	return nil
}

func (a *attacker) header() *wire.Header {
	a.number++
	h := &wire.Header{Timestamp: uint64(time.Now().UnixMilli())}
	binary.LittleEndian.PutUint64(h.UniqueID[:], a.number)
	binary.LittleEndian.PutUint64(h.UniqueID[8:], uint64(os.Getpid()))
	return h
}

// honest is no attack: what any client asks.
const honest = "honest"

// decision asks for a token of a bucket that has enough.
func (a *attacker) decision() ([]byte, error) {
	const window, plenty = 1000, 1_000_000_000
	a.resources[0] = wire.Resource{Bucket: ident.Bucket("bench", window, plenty), Window: window, Rate: plenty, Tokens: 1}
	return a.request(a.resources[:1], 60)
}

func (a *attacker) request(resources []wire.Resource, ttl uint32) ([]byte, error) {
	return a.credential.AppendRequest(a.buf, a.sealer, a.header(), &wire.Request{Layout: wire.Layout2, DedupTTL: ttl, Resources: resources})
}
