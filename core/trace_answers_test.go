package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// handed is an answer of the script.
type handed struct {
	server ident.ServerID
	of     *traced
	say    reply
	socket SocketID
	blocks []string // if it names them
	layout wire.Layout
	damage string
}

var damages = []string{"bad-tag", "cut", "longer", "reflected", "other-mode", "a-report", "empty"}

// response hands in "SERVER NAME" with more words for what it says and what is
// wrong with it.
func (tr *trace) response(d time.Duration, args []string) error {
	a, err := tr.parseAnswer(args)
	if err != nil {
		return err
	}
	b, err := tr.encode(a)
	if err != nil {
		return err
	}
	v := tr.core.HandleDatagram(tr.at(d), a.socket, b)
	tr.sayf(d, "response %s: %s", strings.Join(args, " "), sayVerdict(v))
	return nil
}

func (tr *trace) parseAnswer(args []string) (a handed, err error) {
	if len(args) < 2 {
		return a, errors.New("response SERVER REQUEST …")
	}
	if a.server, err = serverNamed(args[0]); err != nil {
		return a, err
	}
	if a.of = tr.requests[args[1]]; a.of == nil {
		return a, fmt.Errorf("no request %q", args[1])
	}
	a.socket = 1
	for _, word := range args[2:] {
		name, value, _ := strings.Cut(word, "=")
		number, numberErr := strconv.ParseUint(value, 10, 32)
		switch name {
		case "reject":
			a.say.deficit = 1
		case "change-port":
			a.say.changePort = true
		case "latency":
			a.say.latency, err = uint32(number), numberErr
		case "socket":
			a.socket, err = SocketID(number), numberErr
		case "layout":
			a.layout, err = wire.Layout(number), numberErr
		case "blocks":
			a.blocks = strings.Split(value, ",")
		default:
			if !slices.Contains(damages, word) {
				return a, fmt.Errorf("unknown word %q", word)
			}
			a.damage = word
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// encode makes the datagram of an answer.
func (tr *trace) encode(a handed) ([]byte, error) {
	if a.damage == "empty" {
		return tr.responder.compose(tr.t, tr.uid(a.of), a.server, nil, nil), nil
	}
	if a.blocks == nil {
		return tr.damaged(tr.responder.answer(tr.t, a.of.datagram, a.server, a.say), &a), nil
	}
	guards, resources, err := parseBlocks(a.blocks)
	if err != nil {
		return nil, err
	}
	if a.layout == 0 {
		a.layout = wire.Layout2
	}
	return tr.damaged(tr.responder.composeIn(tr.t, a.layout, tr.uid(a.of), a.server, guards, resources), &a), nil
}

func (tr *trace) uid(r *traced) wire.UniqueID {
	var e wire.Envelope
	if err := wire.ParseEnvelope(r.datagram, &e); err != nil {
		tr.t.Fatal(err)
	}
	return e.Header.UniqueID
}

// damaged does to a good response what the word says.
func (tr *trace) damaged(b []byte, a *handed) []byte {
	switch a.damage {
	case "bad-tag":
		b[len(b)-1] ^= 1
	case "cut":
		b = b[:30]
	case "longer": // than any datagram
		b = append(b, make([]byte, wire.MaxDatagram)...)
	case "reflected":
		b = a.of.datagram
	case "other-mode":
		b = tr.otherMode(b)
	case "a-report":
		h := wire.Header{KeyID: uint64(a.server), UniqueID: tr.uid(a.of), Steering: 1}
		var err error
		b, err = tr.responder.credential.AppendReport(nil, tr.responder.sealer, &h, wire.Layout2, observations(1))
		if err != nil {
			tr.t.Fatal(err)
		}
	}
	return b
}

// otherMode puts no authentication in the place of the key's, and where the key
// has none, a cookie.
func (tr *trace) otherMode(b []byte) []byte {
	const header, none, cookie = 40, 4, 36
	size := int(b[header+2])
	if size > none {
		return slices.Concat(b[:header], []byte{0x4e, 0x41, none, 0}, b[header+size:])
	}
	return slices.Concat(b[:header], []byte{0x43, 0x41, cookie, 0}, make([]byte, cookie-4), b[header+size:])
}

// parseBlocks reads blocks: "guard", a tracker's with a threshold of 100 ms or of N
// after "guard@N", and names of buckets, each with ":N" for the latency or deficit
// that is answered.
func parseBlocks(words []string) (guards, resources []said, err error) {
	for _, word := range words {
		name, text, given := strings.Cut(word, ":")
		var n uint64
		if given {
			if n, err = strconv.ParseUint(text, 10, 32); err != nil {
				return nil, nil, err
			}
		}
		if kind, text, given := strings.Cut(name, "@"); kind == "guard" {
			threshold := uint64(100)
			if given {
				if threshold, err = strconv.ParseUint(text, 10, 32); err != nil {
					return nil, nil, err
				}
			}
			guards = append(guards, said{guard: wire.Guard{
				Tracker: ident.Tracker("inventory", 10_000, 100, 5), TTL: 10_000, MaxSamples: 100, MinSamples: 5, Threshold: uint32(threshold),
			}, number: uint32(n)})
			continue
		}
		resources = append(resources, said{resource: wire.Resource{
			Bucket: ident.Bucket(name, 1000, 100), Window: 1000, Rate: 100, Tokens: 1,
		}, number: uint32(n)})
	}
	return guards, resources, nil
}
