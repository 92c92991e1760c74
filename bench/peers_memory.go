package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// resident is the memory that the server's side has in the machine, in bytes.
func (s *subject) resident() (float64, error) {
	var sum float64
	for _, pid := range s.pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("how much memory %s has: %w", s.name, err)
		}
		kb, err := residentIn(b)
		if err != nil {
			return 0, fmt.Errorf("how much memory %s has: %w", s.name, err)
		}
		sum += kb * 1024
	}
	return sum, nil
}

// residentIn finds kilobytes in what the system says of a process.
func residentIn(status []byte) (float64, error) {
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "VmRSS:"); found {
			return strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
		}
	}
	return 0, fmt.Errorf("the system does not say")
}

// memory is what a peer's side has resident after it was asked for each of many keys once, as fast as it
// takes it: many keys in a request where its protocol has that, since lone ones take minutes.
func (p *peers) memory(ctx context.Context, name string) (float64, error) {
	peer, err := p.start(ctx, name, memoryKeys)
	if err != nil {
		return 0, err
	}
	defer peer.end()
	const (
		connections, perConnection = 4, 64
		batch                      = 250
		tenMinutes                 = 600_000 // ms, of which a key of the script lives a tenth
	)
	job := peerJob{Connections: connections, InFlight: connections * perConnection, Keys: memoryKeys, Each: true, Limit: 10, Window: tenMinutes}
	if name != redisName {
		job.InFlight, job.Batch = 2*connections, batch
	}
	if _, err := p.ask(ctx, peer, job); err != nil {
		return 0, err
	}
	return peer.resident()
}

// ourMemory is what an r-server has resident after each of many buckets was consumed from once.
func (c *comparing) ourMemory(ctx context.Context) (float64, error) {
	quotas := apikey.DefaultQuotas()
	quotas.RateBuckets = 1 << 20
	key, err := apikey.New(apikey.AuthAES, 1, quotas, rand.Reader)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp(c.peers.dir, "r-server") // of its tenants file
	if err != nil {
		return 0, err
	}
	binary := filepath.Join(dir, "weir")
	if err := os.Symlink(c.binary, binary); err != nil {
		return 0, err
	}
	server, err := startWeir(ctx, binary, tenant{name: "bench", key: key})
	if err != nil {
		return 0, err
	}
	defer server.end()
	if err := fill(server, key, memoryKeys); err != nil {
		return 0, err
	}
	return server.resident()
}

// fill takes one token of each of many buckets, whose limit is 10 a minute, and fails if one is denied.
func fill(s *subject, key apikey.Key, buckets int) error {
	const (
		window, limit, ttl = 60_000, 10, 300 // the last is the most of a usual key
		patience, attempts = 300 * time.Millisecond, 5
	)
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.addr))
	if err != nil {
		return err
	}
	defer conn.Close()
	credential, err := wire.NewCredential(key)
	if err != nil {
		return err
	}
	sealer, err := wire.NewSealer(rand.Reader)
	if err != nil {
		return err
	}
	var (
		out      = make([]byte, 0, wire.BufferSize)
		in       = make([]byte, wire.BufferSize)
		scratch  wire.Scratch
		envelope wire.Envelope
		view     wire.ResponseView
	)
	trip := func(request *wire.Request, number uint64) error {
		h := wire.Header{Timestamp: uint64(time.Now().UnixMilli())}
		binary.LittleEndian.PutUint64(h.UniqueID[8:], number)
		b, err := credential.AppendRequest(out, sealer, &h, request)
		if err != nil {
			return err
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := conn.Write(b); err != nil {
			return err
		}
		for {
			n, err := conn.Read(in)
			if err != nil {
				return err
			}
			if err := wire.ParseEnvelope(in[:n], &envelope); err != nil {
				return err
			}
			pdu, err := credential.Open(&envelope, &scratch)
			if err != nil {
				return err
			}
			if envelope.Header.UniqueID == h.UniqueID { // and not that of one that was given up
				return wire.ParseResponse(pdu, wire.Layout2, &view)
			}
		}
	}
	for next, number := 0, uint64(0); next < buckets; {
		request := wire.Request{Layout: wire.Layout2, DedupTTL: ttl}
		for ; next < buckets && len(request.Resources) < mostResources; next++ {
			request.Resources = append(request.Resources, wire.Resource{
				Bucket: ident.Bucket(strconv.Itoa(next), window, limit), Window: window, Rate: limit, Tokens: 1,
			})
		}
		for attempt := 1; ; attempt++ { // as other clients do; a second token does no harm
			number++
			err := trip(&request, number)
			if err == nil {
				break
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || attempt == attempts {
				return fmt.Errorf("filling %s, with %d of %d keys: %w", s.name, next, buckets, err)
			}
		}
		if view.Resources() != len(request.Resources) {
			return fmt.Errorf("filling %s: %d answers to %d questions", s.name, view.Resources(), len(request.Resources))
		}
		for i := range view.Resources() {
			if view.Resource(i).Tokens != 0 {
				return fmt.Errorf("filling %s: a bucket that is full denies", s.name)
			}
		}
	}
	return nil
}
