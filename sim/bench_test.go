package sim

import (
	"testing"
	"time"
)

// bar is the scenario of the bar: so many requests against three servers, with 1 % loss and one
// restart.
func bar(requests int) *Scenario {
	length := time.Duration(requests) * 100 * time.Microsecond
	return &Scenario{
		Name: "bar", Length: length,
		Buckets: []Bucket{{Name: "tenant", Limit: 900, Window: time.Second, Count: 10, Zipf: 100}},
		Servers: []Server{
			{Name: "A", Age: 30 * time.Second, Service: Constant(20 * time.Microsecond)},
			{Name: "B", Age: 20 * time.Second, Service: Constant(20 * time.Microsecond)},
			{Name: "C", Age: 10 * time.Second, Service: Constant(20 * time.Microsecond)},
		},
		Clients: []Clients{{
			Name: "web", Count: 10, Arrivals: Arrivals{Kind: ArrivePoisson, Every: time.Millisecond},
			Mix: []Choice{{Take: []Take{{"tenant", 1}}}},
		}},
		Links:  []Link{{From: "*", To: "*", Delay: Lognormal(300*time.Microsecond, 3*time.Millisecond), Loss: 10_000}},
		DNS:    DNS{Delay: Constant(2 * time.Millisecond), Join: time.Second, Leave: time.Second},
		Faults: []Fault{{Kind: FaultKill, At: length / 2, For: 2 * time.Second, Server: "A"}},
	}
}

// BenchmarkBar plays the bar's scenario; an operation is a request.
func BenchmarkBar(b *testing.B) {
	b.ReportAllocs()
	sum, err := Run(bar(b.N), 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(sum.Events)/float64(sum.Requests), "events/op")
	b.Logf("%+v", sum)
}
