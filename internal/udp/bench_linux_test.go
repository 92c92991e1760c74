package udp_test

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/udp"
)

// BenchmarkBatch is a datagram's way through two sockets, when so many are written at
// once and lie there to be read, with a system call for many and with one for each. It
// counts datagrams. cpu-ns/op is the process's time on processors, of which other
// programs take less than of the clock's.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{1, 4, 16, 32} {
		for _, way := range []string{"calls=many", "calls=one"} {
			b.Run(fmt.Sprintf("%s/datagrams=%d", way, size), func(b *testing.B) { benchmarkBatch(b, size, way == "calls=one") })
		}
	}
}

func benchmarkBatch(b *testing.B, size int, single bool) {
	to := listen(b, udp.Host(), "0.0.0.0:0", udp.Options{AskedAddr: true, NoBatch: single})
	from := listen(b, udp.Host(), "127.0.0.1:0", udp.Options{NoBatch: single})
	peer := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.LocalAddr().Port())
	out, in := make([]udp.Datagram, size), space(size, 1201)
	for i := range out {
		out[i] = udp.Datagram{Buf: make([]byte, 200), N: 200, Peer: peer}
	}
	b.ReportAllocs()
	before := processorTime(b)
	for n := 0; n < b.N; n += size {
		if sent, err := from.Write(out); sent != size || err != nil {
			b.Fatal(sent, err)
		}
		for got := 0; got < size; {
			n, err := to.Read(in[got:])
			if err != nil {
				b.Fatal(err)
			}
			got += n
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime is what this process has had of processors, in ns.
func processorTime(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
