package limiter

import "github.com/weirhq/weir/wire"

// pass makes the answer to a rejected request one that passes: no deficit, every latency below its
// threshold. Rates stay as they are. It returns false if a threshold of 0 stands in the way, which
// nothing passes.
func pass(v *wire.RequestView, ans *wire.Answer) (passes bool) {
	passes = true
	for i := range ans.Latencies {
		threshold := v.Guard(i).Threshold
		if threshold == 0 {
			passes = false
			continue
		}
		ans.Latencies[i] = min(ans.Latencies[i], threshold-1)
	}
	clear(ans.Deficits)
	return passes
}
