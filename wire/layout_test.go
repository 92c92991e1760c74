package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ruleLayout states the layout rule of docs/protocol.md ("Layouts") a second time, as a ranking:
// of the layouts whose lengths fit, those with blank fields come first, then layout 2. body is what
// follows the PDU's header, at least 4 bytes. It returns 0 when none fits.
func ruleLayout(body []byte) Layout {
	u16 := func(at int) int { return int(body[at]) | int(body[at+1])<<8 }
	guards, resources := u16(0), u16(2)
	best, bestRank := Layout(0), 4
	for _, l := range []struct {
		layout Layout
		guard  int
		rank   int
	}{{Layout2, 36, 0}, {Layout1, 40, 1}} {
		at := 4 + guards*l.guard + resources*28
		for at+4 <= len(body) && u16(at+2) >= 4 {
			at += u16(at + 2)
		}
		if at != len(body) {
			continue
		}
		rank := l.rank
		for g := 1; g <= guards; g++ {
			if end := 4 + g*l.guard; !slices.Equal(body[end-4:end], []byte{0, 0, 0, 0}) {
				rank = l.rank + 2
			}
		}
		for r := 1; r <= resources; r++ {
			if end := 4 + guards*l.guard + r*28; u16(end-2) != 0 {
				rank = l.rank + 2
			}
		}
		if rank < bestRank {
			best, bestRank = l.layout, rank
		}
	}
	return best
}

// craft lays a request's PDU out from raw parts.
func craft(guards, resources int, parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	b := binary.LittleEndian.AppendUint16(nil, typeRequest)
	b = binary.LittleEndian.AppendUint16(b, uint16(12+len(body)))
	b = binary.LittleEndian.AppendUint32(b, 60)
	b = binary.LittleEndian.AppendUint16(b, uint16(guards))
	b = binary.LittleEndian.AppendUint16(b, uint16(resources))
	return append(b, body...)
}

// id is 16 bytes that look like nothing else.
func id(n int) []byte { return []byte(fmt.Sprintf("%016x", uint64(0xfeedfacecafe0000)+uint64(n))) }

func words(v ...uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// guardBlock is a guard of n fields: 5 in layout 2, 6 in layout 1.
func guardBlock(n int, fields ...uint32) []byte { return append(id(n), words(fields...)...) }

func resourceBlock(n int, window, rate uint32, tokens, padding uint16) []byte {
	return append(id(n), words(window, rate, uint32(tokens)|uint32(padding)<<16)...)
}

func tlv(typ, size uint16, body string) []byte {
	b := binary.LittleEndian.AppendUint16(nil, typ)
	b = binary.LittleEndian.AppendUint16(b, size)
	return append(b, body...)
}

func label(size, length uint16, text string) []byte {
	b := tlv(TypeLabel, size, "")
	b = binary.LittleEndian.AppendUint16(b, length)
	return append(b, text...)
}

// layoutTraps are requests that a careless rule misreads. want is the layout, 0 for malformed.
func layoutTraps() []layoutTrap {
	one := func(i int) []byte { return guardBlock(i, 60000, 32, 8, 3, 50, 0) }
	two := func(i int) []byte { return guardBlock(i, 60000, 32, 3, 50, 0) }
	zeros := func(n int) []byte { return make([]byte, n) }
	plain := resourceBlock(9, 1000, 100, 1, 0)
	return []layoutTrap{
		{"no guards", 0, 1, [][]byte{plain}, Layout2, ""},
		{"no guards, padding set", 0, 1, [][]byte{resourceBlock(9, 1000, 100, 1, 7)}, Layout2, ""},
		{"nothing asked", 0, 0, nil, Layout2, ""},
		{"nothing asked, a label", 0, 0, [][]byte{label(8, 2, "ab")}, Layout2, "ab"},
		{"layout 1, two guards, rate like a TLV of 8", 2, 1, [][]byte{one(1), one(2), resourceBlock(9, 1000, 550000, 1, 0)}, Layout1, ""},
		{"layout 1, two guards, rate like a label too short for its length", 2, 1, [][]byte{one(1), one(2), resourceBlock(9, 1000, 0x84C4D, 500, 0)}, Layout1, ""},
		{"layout 1, two guards, rate like a TLV, then a label", 2, 1, [][]byte{one(1), one(2), resourceBlock(9, 1000, 550000, 1, 0), label(12, 3, "abc\x00\x00\x00")}, Layout1, "abc"},
		{"layout 1, three guards, a window like a TLV of 12", 3, 1, [][]byte{one(1), one(2), one(3), resourceBlock(9, 800000, 100, 1, 0)}, Layout1, ""},
		{"layout 1, three guards, five minutes and a rate like two TLVs", 3, 1, [][]byte{one(1), one(2), one(3), resourceBlock(9, 300000, 550000, 1, 0)}, Layout1, ""},
		{"layout 1, four guards, an ID like a TLV of 16", 4, 1, [][]byte{one(1), one(2), one(3), one(4), []byte("fedcba987654\x10\x00\x10\x00"), words(1000, 100, 1)}, Layout1, ""},
		{"layout 1, a guard only, rest of 4", 1, 0, [][]byte{one(1)}, Layout1, ""},
		{"layout 1, one guard and a TLV of 4 made of tokens and padding", 1, 1, [][]byte{one(1), resourceBlock(9, 1000, 100, 1, 4)}, Layout2, ""},
		{"layout 1, current latency set, nothing else fits", 2, 1, [][]byte{guardBlock(1, 60000, 32, 8, 3, 50, 12), one(2), plain}, Layout1, ""},
		{"layout 1, current latency set, fits both and neither blank", 2, 1, [][]byte{guardBlock(1, 60000, 32, 8, 3, 50, 12), one(2), resourceBlock(9, 1000, 550000, 1, 0)}, Layout2, ""},
		{"layout 1, threshold and samples 0: reads blank as layout 2", 2, 1, [][]byte{guardBlock(1, 60000, 32, 8, 3, 0, 0), guardBlock(2, 60000, 32, 8, 0, 50, 0), resourceBlock(9, 1000, 550000, 0, 0)}, Layout2, ""},
		{"layout 2, two guards", 2, 1, [][]byte{two(1), two(2), plain}, Layout2, ""},
		{"layout 2, two guards and a label of 8: fits layout 1", 2, 0, [][]byte{two(1), two(2), label(8, 2, "ab")}, Layout2, "ab"},
		{"layout 2, the same with a label too long for its TLV", 2, 0, [][]byte{two(1), two(2), label(8, 3, "ab")}, 0, ""},
		{"layout 2, current latency set, fits both", 2, 0, [][]byte{guardBlock(1, 60000, 32, 3, 50, 9), two(2), label(8, 2, "ab")}, Layout2, "ab"},
		{"layout 2, padding set, fits both", 2, 1, [][]byte{two(1), two(2), resourceBlock(9, 1000, 100, 1, 5), label(8, 2, "ab")}, Layout2, "ab"},
		{"layout 1, guards only, the second threshold like a TLV of 8", 2, 0, [][]byte{one(1), guardBlock(2, 60000, 32, 8, 3, 550000, 0)}, Layout1, ""},
		{"zeros, layout 2 lengths", 3, 2, [][]byte{zeros(3*36 + 2*28)}, Layout2, ""},
		{"zeros, layout 1 lengths", 3, 2, [][]byte{zeros(3*40 + 2*28)}, Layout1, ""},
		{"zeros, one guard, layout 1 lengths", 1, 0, [][]byte{zeros(40)}, Layout1, ""},
		{"zeros, one byte more", 1, 1, [][]byte{zeros(36 + 28 + 1)}, 0, ""},
		{"zeros, between the layouts", 2, 0, [][]byte{zeros(76)}, 0, ""},
		{"rest of an empty TLV", 0, 1, [][]byte{plain, tlv(7, 4, "")}, Layout2, ""},
		{"rest of 3 bytes", 0, 1, [][]byte{plain, zeros(3)}, 0, ""},
		{"rest of a TLV of size 3", 0, 1, [][]byte{plain, tlv(7, 3, "")}, 0, ""},
		{"rest of a TLV of size 0", 0, 1, [][]byte{plain, tlv(7, 0, "")}, 0, ""},
		{"rest of a TLV one byte too long", 0, 1, [][]byte{plain, tlv(7, 9, "abcd")}, 0, ""},
		{"rest of a TLV one byte too short", 0, 1, [][]byte{plain, tlv(7, 7, "abcd")}, 0, ""},
		{"rest of unknown TLVs of odd sizes", 0, 1, [][]byte{plain, tlv(7, 5, "a"), tlv(8, 7, "abc")}, Layout2, ""},
		{"a label behind an unknown TLV", 0, 1, [][]byte{plain, tlv(7, 5, "a"), label(8, 1, "x\xff")}, Layout2, "x"},
		{"two labels", 0, 1, [][]byte{plain, label(8, 1, "x\x00"), label(8, 1, "y\x00")}, Layout2, "x"},
		{"a label of length 0, then one", 0, 1, [][]byte{plain, label(8, 0, "x\x00"), label(8, 1, "y\x00")}, Layout2, "y"},
		{"a label of length 0", 0, 1, [][]byte{plain, label(8, 0, "xy")}, Layout2, ""},
		{"a label that fills its TLV", 0, 1, [][]byte{plain, label(8, 2, "xy")}, Layout2, "xy"},
		{"a label one byte too long", 0, 1, [][]byte{plain, label(8, 3, "xy")}, 0, ""},
		{"a label of length 65535", 0, 1, [][]byte{plain, label(8, 65535, "xy")}, 0, ""},
		{"a label of size 4", 0, 1, [][]byte{plain, tlv(TypeLabel, 4, "")}, 0, ""},
		{"a label of size 6", 0, 1, [][]byte{plain, label(6, 0, "")}, 0, ""},
		{"a label of size 7", 0, 1, [][]byte{plain, label(7, 1, "a")}, 0, ""},
		{"a second label that is broken", 0, 1, [][]byte{plain, label(8, 2, "xy"), label(8, 3, "xy")}, 0, ""},
		{"a guard less than counted", 2, 0, [][]byte{two(1)}, 0, ""},
		{"a guard less than counted, layout 1", 2, 0, [][]byte{one(1)}, 0, ""},
		{"a resource less than counted", 0, 2, [][]byte{plain}, 0, ""},
		{"a resource more than counted", 0, 1, [][]byte{plain, plain}, 0, ""},
		{"guards 65535", 65535, 0, [][]byte{two(1)}, 0, ""},
		{"resources 65535", 0, 65535, [][]byte{plain}, 0, ""},
		{"both 65535", 65535, 65535, [][]byte{zeros(1000)}, 0, ""},
		// 16384 blocks of any of these lengths are a multiple of 2^16 bytes.
		{"guards that wrap 16 bits", 16384 + 3, 0, [][]byte{zeros(3 * 36)}, 0, ""},
		{"guards that wrap 16 bits, layout 1", 16384 + 3, 0, [][]byte{zeros(3 * 40)}, 0, ""},
		{"resources that wrap 16 bits", 0, 16384 + 3, [][]byte{zeros(3 * 28)}, 0, ""},
	}
}

type layoutTrap struct {
	name              string
	guards, resources int
	parts             [][]byte
	want              Layout
	label             string
}

func (c *layoutTrap) pdu() []byte { return craft(c.guards, c.resources, c.parts...) }

func TestLayoutRule(t *testing.T) {
	for _, c := range layoutTraps() {
		t.Run(c.name, func(t *testing.T) {
			pdu := c.pdu()
			var v RequestView
			err := ParseRequest(pdu, &v)
			if c.want == 0 {
				if !errors.Is(err, ErrMalformed) || v.Layout != 0 || v.Guards() != 0 || v.PDU() != nil {
					t.Fatalf("%v, %v; want it malformed and the view zero", err, v.Layout)
				}
				return
			}
			if err != nil || v.Layout != c.want {
				t.Fatalf("%v, %v; want %v", err, v.Layout, c.want)
			}
			if rule := ruleLayout(pdu[pduSize:]); rule != c.want {
				t.Errorf("the second statement of the rule says %v", rule)
			}
			if v.Guards() != c.guards || v.Resources() != c.resources || string(v.Label()) != c.label {
				t.Errorf("%d guards, %d resources, label %q; want %d, %d, %q",
					v.Guards(), v.Resources(), v.Label(), c.guards, c.resources, c.label)
			}
			for i := range v.Guards() {
				v.Guard(i)
			}
			for i := range v.Resources() {
				v.Resource(i)
			}
		})
	}
}

func TestReportLayout(t *testing.T) {
	report := func(count, second uint16, body int) []byte {
		b := craft(int(count), int(second), make([]byte, body))
		binary.LittleEndian.PutUint16(b, typeReport)
		return b
	}
	for _, c := range []struct {
		name string
		pdu  []byte
		want Layout // 0: malformed
		n    int
	}{
		{"empty", report(0, 0, 0), Layout2, 0},
		{"one, layout 2", report(1, 0, 32), Layout2, 1},
		{"one, layout 1", report(1, 0, 36), Layout1, 1},
		{"eight, layout 1: as long as nine of layout 2", report(8, 0, 8*36), Layout1, 8},
		{"nine, layout 2", report(9, 0, 9*32), Layout2, 9},
		{"reserved bits set", report(1, 9, 32), Layout2, 1},
		{"a byte less", report(1, 0, 31), 0, 0},
		{"a byte more", report(1, 0, 33), 0, 0},
		{"a byte more, layout 1", report(1, 0, 37), 0, 0},
		{"a TLV behind layout 2 blocks", report(2, 0, 2*32+4), 0, 0},
		{"one more than counted", report(1, 0, 64), 0, 0},
		{"none counted", report(0, 0, 32), 0, 0},
		{"65535 counted", report(65535, 0, 1000), 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v ReportView
			err := ParseReport(c.pdu, &v)
			if c.want == 0 {
				if !errors.Is(err, ErrMalformed) || v.Len() != 0 || v.PDU() != nil {
					t.Fatalf("%v; want it malformed and the view zero", err)
				}
				return
			}
			if err != nil || v.Layout != c.want || v.Len() != c.n {
				t.Errorf("%v, %v, %d; want %v, %d", err, v.Layout, v.Len(), c.want, c.n)
			}
		})
	}
}

// A response's layout is given. What it holds in which order is the sender's affair at this level.
func TestResponseShowsBlocksAsSent(t *testing.T) {
	first, second := guardBlock(1, 60000, 32, 3, 50, 49), guardBlock(2, 60000, 32, 3, 20, 19)
	res := resourceBlock(9, 1000, 7, 2, 99)
	response := func(guards int, parts ...[]byte) []byte {
		b := craft(guards, 1, parts...)
		binary.LittleEndian.PutUint16(b, typeResponse)
		return b
	}
	for _, c := range []struct {
		name      string
		pdu       []byte
		latencies []uint32 // nil: malformed
	}{
		{"in order", response(2, first, second, res), []uint32{49, 19}},
		{"swapped", response(2, second, first, res), []uint32{19, 49}},
		{"doubled", response(2, first, first, res), []uint32{49, 49}},
		{"one left out", response(1, second, res), []uint32{19}},
		{"one too many", response(3, first, second, first, res), []uint32{49, 19, 49}},
		{"a TLV behind", response(2, first, second, res, tlv(7, 7, "abc")), []uint32{49, 19}},
		{"what would be a broken label in a request", response(2, first, second, res, label(7, 9, "a")), []uint32{49, 19}},
		{"rest of 3 bytes", response(2, first, second, res, []byte{1, 2, 3}), nil},
		{"rest of zeros", response(2, first, second, res, make([]byte, 8)), nil},
		{"more counted than there are", response(3, first, second, res), nil},
		{"the other layout", response(2, guardBlock(1, 60000, 32, 8, 3, 50, 49), guardBlock(2, 60000, 32, 8, 3, 20, 19), res), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v ResponseView
			err := ParseResponse(c.pdu, Layout2, &v)
			if c.latencies == nil {
				if !errors.Is(err, ErrMalformed) || v.Guards() != 0 || v.PDU() != nil {
					t.Fatalf("%v; want it malformed and the view zero", err)
				}
				return
			}
			var got []uint32
			for i := range v.Guards() {
				got = append(got, v.Guard(i).Latency)
			}
			if err != nil || !slices.Equal(got, c.latencies) || v.Resources() != 1 || v.Resource(0).Rate != 7 {
				t.Errorf("%v, latencies %v; want %v", err, got, c.latencies)
			}
		})
	}
	var v ResponseView
	for _, l := range []Layout{0, 3, 255} {
		if err := ParseResponse(response(2, first, second, res), l, &v); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v: %v", l, err)
		}
	}
}

func TestFrameOfPDUs(t *testing.T) {
	whole := craft(0, 1, resourceBlock(9, 1000, 100, 1, 0))
	sized := func(size uint16) []byte {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint16(b[2:], size)
		return b
	}
	typed := func(typ uint16) []byte {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint16(b, typ)
		return b
	}
	var v RequestView
	for name, pdu := range map[string][]byte{
		"nothing":                  {},
		"nil":                      nil,
		"no size":                  whole[:2],
		"no word":                  whole[:7],
		"no counts":                whole[:8],
		"half the counts":          whole[:11],
		"size 0":                   sized(0),
		"size 7":                   sized(7),
		"size 8":                   sized(8),
		"size 11":                  sized(11),
		"size below the blocks":    sized(uint16(len(whole) - 1)),
		"size beyond the datagram": sized(uint16(len(whole) + 1)),
		"size 65535":               sized(65535),
		"a response":               typed(typeResponse),
		"a report":                 typed(typeReport),
		"an unknown type":          typed(0x5453),
		"type 0":                   typed(0),
	} {
		if err := ParseRequest(pdu, &v); !errors.Is(err, ErrMalformed) || v.PDU() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	behind := append(slices.Clone(whole), "behind"...)
	if err := ParseRequest(behind, &v); err != nil || string(v.Trailing()) != "behind" || !bytes.Equal(v.PDU(), whole) {
		t.Errorf("bytes behind the PDU: %v, %q", err, v.Trailing())
	}
	if v.Word() != 60 || v.DedupTTL != 60 || len(v.Rest()) != 0 {
		t.Errorf("word %d, TTL %d, rest %x", v.Word(), v.DedupTTL, v.Rest())
	}
	if (&RequestView{}).Word() != 0 {
		t.Error("the word of a zero view")
	}
}

func TestPDUKind(t *testing.T) {
	for want, typ := range map[Kind]uint16{KindRequest: typeRequest, KindResponse: typeResponse, KindReport: typeReport} {
		b := binary.LittleEndian.AppendUint16(nil, typ)
		if k, err := PDUKind(append(b, 0, 0, 0, 0, 0, 0)); err != nil || k != want {
			t.Errorf("%v: %v, %v", want, k, err)
		}
		if k, err := PDUKind(append(b, 0, 0, 0, 0, 0)); !errors.Is(err, ErrMalformed) || k != 0 {
			t.Errorf("%v cut short: %v, %v", want, k, err)
		}
	}
	if k, err := PDUKind(make([]byte, 8)); !errors.Is(err, ErrMalformed) || k != 0 {
		t.Errorf("unknown: %v, %v", k, err)
	}
}

func TestIndexOutOfRangePanics(t *testing.T) {
	var v RequestView
	one, rest := resourceBlock(9, 1000, 100, 1, 0), label(40, 34, strings.Repeat("x", 34))
	if err := ParseRequest(craft(1, 2, guardBlock(1, 1, 2, 3, 4, 0), one, one, rest), &v); err != nil {
		t.Fatal(err)
	}
	var r ReportView
	for name, f := range map[string]func(){
		"guard 1":            func() { v.Guard(1) }, // the bytes of resources follow it
		"guard -1":           func() { v.Guard(-1) },
		"resource 2":         func() { v.Resource(2) }, // the bytes of a label follow it
		"resource -1":        func() { v.Resource(-1) },
		"no observations":    func() { r.At(0) },
		"guard of zero view": func() { (&RequestView{}).Guard(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestNames(t *testing.T) {
	got := strings.Join([]string{
		KindRequest.String(), KindResponse.String(), KindReport.String(), Kind(9).String(),
		Layout1.String(), Layout2.String(), Layout(0).String(), UniqueID{15: 0xab}.String(),
	}, ", ")
	want := "request, response, report, Kind(9), layout 1, layout 2, Layout(0), 000000000000000000000000000000ab"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
