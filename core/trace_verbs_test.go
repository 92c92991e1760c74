package core

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event runs one verb of a script.
func (tr *trace) event(d time.Duration, verb string, args []string) error {
	switch verb {
	case "submit":
		return tr.submit(d, args)
	case "response":
		return tr.response(d, args)
	case "noise":
		v := tr.core.HandleDatagram(tr.at(d), 1, []byte("noise"))
		tr.sayf(d, "noise: %s", sayVerdict(v))
	case "timer":
		tr.sayf(d, "timer")
		tr.core.HandleTimer(tr.at(d))
	case "poll":
		tr.pollSends(d)
	case "read":
		tr.pollEvents(d)
	case "wall":
		step, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		tr.wall += step
		tr.sayf(d, "wall %s", args[0])
	case "cancel":
		tr.sayf(d, "cancel %s: %v", args[0], tr.core.Cancel(tr.at(d), tr.id(args[0])))
	case "close":
		tr.sayf(d, "close")
		tr.core.Close(tr.at(d))
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
		if err := tr.core.SetMembership(tr.at(d), servers); err != nil {
			tr.sayf(d, "membership %s: %v", strings.Join(args, " "), err)
		}
	case "refresh":
		tr.sayf(d, "refresh")
		tr.core.Refresh(tr.at(d))
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

// submit starts "NAME" with the blocks that it names, one token of checkout if it
// names none, or with "nothing".
func (tr *trace) submit(d time.Duration, args []string) error {
	name := args[0]
	request := &Request{}
	blocks := args[1:]
	if len(blocks) == 0 {
		blocks = []string{"checkout"}
	}
	if !slices.Equal(blocks, []string{"nothing"}) {
		guards, resources, err := parseBlocks(blocks)
		if err != nil {
			return err
		}
		for _, s := range guards {
			request.Guards = append(request.Guards, s.guard)
		}
		for _, s := range resources {
			request.Resources = append(request.Resources, s.resource)
		}
	}
	id, err := tr.core.Submit(tr.at(d), request)
	if err != nil {
		tr.sayf(d, "submit %s: %v", name, err)
		return nil
	}
	tr.sayf(d, "submit %s", strings.Join(args, " "))
	tr.know(name, id)
	return nil
}

// know gives a request that was just begun a name in the transcript.
func (tr *trace) know(name string, id RequestID) {
	f := tr.core.flights.find(id)
	r := &traced{id: id, datagram: slices.Clone(f.datagram), replays: map[int]bool{}}
	if f.members != nil {
		r.oldest = f.members.servers[0].ID
		r.horizon = f.t0 + tr.core.Timeline().Horizon()
	}
	tr.requests[name] = r
}

// id is the handle of a request, or, for a name without one, a handle that the
// core never gave.
func (tr *trace) id(name string) RequestID {
	if r := tr.requests[name]; r != nil {
		return r.id
	}
	return 1 << 62
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
		ref.Request = tr.id(args[1])
		if _, err := fmt.Sscan(args[2], &ref.Endpoint); err != nil {
			return err
		}
	}
	if len(args) > 3 {
		if _, err := fmt.Sscan(args[3], &ref.Round); err != nil {
			return err
		}
	}
	tr.core.HandleSendFailure(tr.at(d), ref, errors.New("network is unreachable"))
	failed := tr.core.Stats().SendFailures
	tr.sayf(d, "send-fails %s (%d, %d, %d, %d failed)", strings.Join(args, " "), failed[1], failed[2], failed[3], failed[4])
	return nil
}

func (tr *trace) report(d time.Duration, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := tr.core.Report(tr.at(d), observations(n)); err != nil {
		tr.sayf(d, "report: %v", err)
	}
	return nil
}

func (tr *trace) rebound(d time.Duration, args []string) error {
	var old, replacement SocketID
	if _, err := fmt.Sscan(strings.Join(args, " "), &old, &replacement); err != nil {
		return err
	}
	tr.core.Rebound(tr.at(d), old, replacement)
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
		if n, ok := strings.CutPrefix(word, "servers="); ok {
			count, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			for i := range count { // the youngest first
				a.Records = append(a.Records, SRV{serverID(count-1-i).Label() + ".example.test.", 1})
			}
			continue
		}
		if n, ok := strings.CutPrefix(word, "others="); ok {
			count, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			for i := range count {
				a.Records = append(a.Records, SRV{fmt.Sprintf("www-%d.example.test.", i), 80})
			}
			continue
		}
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
	tr.core.HandleSRV(tr.at(d), id, a)
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
		if n, ok := strings.CutPrefix(word, "addresses="); ok {
			count, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			for i := range count { // the last first
				a.Addrs = append(a.Addrs, netip.AddrFrom4([4]byte{198, 18, byte((count - 1 - i) >> 8), byte(count - 1 - i)}))
			}
			continue
		}
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
	tr.core.HandleAddrs(tr.at(d), id, a)
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
