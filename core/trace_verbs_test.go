package core

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// event runs one verb of a script.
func (tr *trace) event(d time.Duration, verb string, args []string) error {
	switch verb {
	case "submit":
		return tr.submit(d, args)
	case "response":
		return tr.response(d, args)
	case "noise":
		v := tr.core.HandleDatagram(at(d), 1, []byte("noise"))
		tr.sayf(d, "noise: %s", sayVerdict(v))
	case "timer":
		tr.sayf(d, "timer")
		tr.core.HandleTimer(at(d))
	case "poll":
		for _, s := range drainSends(tr.core, at(d)) {
			tr.saySend(d, s)
		}
	case "cancel":
		tr.sayf(d, "cancel %s: %v", args[0], tr.core.Cancel(at(d), tr.requests[args[0]].id))
	case "close":
		tr.sayf(d, "close")
		tr.core.Close(at(d))
	case "send-fails":
		return tr.sendFails(d, args)
	case "report":
		return tr.report(d, args)
	case "rebound":
		return tr.rebound(d, args)
	case "membership":
		servers, err := parseServers(args)
		if err != nil {
			return err
		}
		return tr.core.SetMembership(at(d), servers)
	case "refresh":
		tr.sayf(d, "refresh")
		tr.core.Refresh(at(d))
	case "srv":
		return tr.srv(d, args)
	case "addrs":
		return tr.addrs(d, args)
	case "deadline":
		if deadline, ok := tr.core.Deadline(); ok {
			tr.sayf(d, "deadline %v", deadline-at(0).Mono)
		} else {
			tr.sayf(d, "no deadline")
		}
	case "wait": // lets the timers run
	default:
		return fmt.Errorf("unknown event %q", verb)
	}
	return nil
}

// submit starts "NAME", or "NAME nothing" for the request for nothing.
func (tr *trace) submit(d time.Duration, args []string) error {
	name := args[0]
	request := askOne()
	if slices.Contains(args, "nothing") {
		request = &Request{}
	}
	if slices.Contains(args, "guard") {
		request = &Request{Guards: []wire.Guard{{Tracker: ident.Tracker("inventory", 10_000, 100, 5), TTL: 10_000, MaxSamples: 100, MinSamples: 5, Threshold: 100}}}
	}
	id, err := tr.core.Submit(at(d), request)
	if err != nil {
		tr.sayf(d, "submit %s: %v", name, err)
		return nil
	}
	tr.sayf(d, "submit %s", name)
	f := tr.core.flights.find(id)
	tr.requests[name] = &traced{id, slices.Clone(f.datagram)}
	return nil
}

// response hands in "SERVER NAME" with more words for what it says and what is
// wrong with it.
func (tr *trace) response(d time.Duration, args []string) error {
	if len(args) < 2 {
		return errors.New("response SERVER REQUEST …")
	}
	id, err := serverNamed(args[0])
	if err != nil {
		return err
	}
	r, ok := tr.requests[args[1]]
	if !ok {
		return fmt.Errorf("no request %q", args[1])
	}
	var say reply
	socket := SocketID(1)
	for _, word := range args[2:] {
		switch {
		case word == "reject":
			say.deficit = 1
		case word == "change-port":
			say.changePort = true
		case strings.HasPrefix(word, "latency="):
			n, err := strconv.ParseUint(word[len("latency="):], 10, 32)
			if err != nil {
				return err
			}
			say.latency = uint32(n)
		case strings.HasPrefix(word, "socket="):
			n, err := strconv.ParseUint(word[len("socket="):], 10, 32)
			if err != nil {
				return err
			}
			socket = SocketID(n)
		case slices.Contains([]string{"bad-tag", "cut", "reflected", "other-mode", "short"}, word):
		default:
			return fmt.Errorf("unknown word %q", word)
		}
	}
	b := tr.damaged(tr.responder.answer(tr.t, r.datagram, id, say), r, args)
	v := tr.core.HandleDatagram(at(d), socket, b)
	tr.sayf(d, "response %s: %s", strings.Join(args, " "), sayVerdict(v))
	return nil
}

// damaged does to a good response what words say.
func (tr *trace) damaged(b []byte, r *traced, words []string) []byte {
	switch {
	case slices.Contains(words, "bad-tag"):
		b[len(b)-1] ^= 1
	case slices.Contains(words, "cut"):
		b = b[:30]
	case slices.Contains(words, "reflected"):
		b = r.datagram
	case slices.Contains(words, "other-mode"):
		b = slices.Concat(b[:40], []byte{0x4e, 0x41, 4, 0}, b[72:])
	case slices.Contains(words, "short"):
		b = tr.emptyAnswer(b)
	}
	return b
}

// emptyAnswer seals an answer to nothing with the header of b.
func (tr *trace) emptyAnswer(b []byte) []byte {
	var e wire.Envelope
	if err := wire.ParseEnvelope(b, &e); err != nil {
		tr.t.Fatal(err)
	}
	question, err := tr.responder.credential.AppendRequest(nil, tr.responder.sealer, &e.Header, &wire.Request{Layout: wire.Layout2, DedupTTL: 1})
	if err != nil {
		tr.t.Fatal(err)
	}
	return tr.responder.answer(tr.t, question, ident.ServerID(e.Header.KeyID), reply{})
}

func sayVerdict(v DatagramVerdict) string {
	if v.Valid() {
		return v.String()
	}
	return "invalid, " + v.String()
}

// sendFails tells of the failure of "KIND NAME ENDPOINT [ROUND]".
func (tr *trace) sendFails(d time.Duration, args []string) error {
	kinds := map[string]SendKind{"send": SendFirst, "replay": SendReplay, "complete-deliver": SendCompletion, "report": SendReport}
	kind, ok := kinds[args[0]]
	if !ok {
		return fmt.Errorf("unknown kind %q", args[0])
	}
	ref := SendRef{Kind: kind}
	if kind != SendReport {
		ref.Request = tr.requests[args[1]].id
		if _, err := fmt.Sscan(args[2], &ref.Endpoint); err != nil {
			return err
		}
	}
	if len(args) > 3 {
		if _, err := fmt.Sscan(args[3], &ref.Round); err != nil {
			return err
		}
	}
	tr.core.HandleSendFailure(at(d), ref, errors.New("network is unreachable"))
	failed := tr.core.Stats().SendFailures
	tr.sayf(d, "send-fails %s (%d, %d, %d, %d failed)", strings.Join(args, " "), failed[1], failed[2], failed[3], failed[4])
	return nil
}

func (tr *trace) report(d time.Duration, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := tr.core.Report(at(d), observations(n)); err != nil {
		tr.sayf(d, "report: %v", err)
	}
	return nil
}

func (tr *trace) rebound(d time.Duration, args []string) error {
	var old, replacement SocketID
	if _, err := fmt.Sscan(strings.Join(args, " "), &old, &replacement); err != nil {
		return err
	}
	tr.core.Rebound(at(d), old, replacement)
	tr.sayf(d, "rebound %d to %d", old, replacement)
	return nil
}

// srv answers lookup "ID" with "ttl=D", "error", or records "TARGET:PORT", where
// a target that is one letter is the conforming one of that server.
func (tr *trace) srv(d time.Duration, args []string) error {
	var a SRVAnswer
	id, words, err := lookupArgs(args, &a.TTL, &a.Err)
	if err != nil {
		return err
	}
	for _, word := range words {
		host, port, _ := strings.Cut(word, ":")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return err
		}
		if sid, err := serverNamed(host); err == nil {
			host = sid.Label() + ".example.test."
		}
		a.Records = append(a.Records, SRV{host, uint16(n)})
	}
	tr.core.HandleSRV(at(d), id, a)
	tr.sayf(d, "srv %s", strings.Join(args, " "))
	return nil
}

// addrs answers lookup "ID" with "ttl=D", "error", or addresses and the family
// that failed.
func (tr *trace) addrs(d time.Duration, args []string) error {
	var a AddrAnswer
	id, words, err := lookupArgs(args, &a.TTL, &a.Err)
	if err != nil {
		return err
	}
	for _, word := range words {
		switch word {
		case "ipv4-fails":
			a.FailedIPv4 = true
			continue
		case "ipv6-fails":
			a.FailedIPv6 = true
			continue
		}
		addr, err := netip.ParseAddr(word)
		if err != nil {
			return err
		}
		a.Addrs = append(a.Addrs, addr)
	}
	tr.core.HandleAddrs(at(d), id, a)
	tr.sayf(d, "addrs %s", strings.Join(args, " "))
	return nil
}

func lookupArgs(args []string, ttl *time.Duration, failure *error) (LookupID, []string, error) {
	if len(args) == 0 {
		return 0, nil, errors.New("which lookup?")
	}
	n, err := strconv.ParseUint(args[0], 10, 64)
	var words []string
	for _, word := range args[1:] {
		switch {
		case word == "error":
			*failure = errors.New("server failure")
		case strings.HasPrefix(word, "ttl="):
			if *ttl, err = time.ParseDuration(word[len("ttl="):]); err != nil {
				return 0, nil, err
			}
		default:
			words = append(words, word)
		}
	}
	return LookupID(n), words, err
}
