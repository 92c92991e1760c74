package sim

import (
	"testing"
	"time"

	"github.com/weirhq/weir/core"
)

// TestMeasureFaultAfterTheLength has a fault begin while the last work is still done: it is not told of a
// dip that was before it, and it does not take the last bin from the wake of the fault before. The last bin
// ends with the length.
func TestMeasureFaultAfterTheLength(t *testing.T) {
	s := scriptScenario()
	s.Length = 2500 * at
	p := newScript(t, s, MeasureOptions{Bin: time.Second})
	p.fault(1000, 0, true)
	p.ask(2100, 1)
	p.decide(2160, 1, -1, core.TimedOut)
	p.fault(2500, 1, true)
	p.fault(2600, 2, true)
	p.fault(2700, 2, false)
	m := p.finish()
	want := []FaultEffect{
		{Fault: 0, Begin: 1000 * at, End: 2500 * at, Submitted: 1, Lost: 1, Recovery: 1500 * at},
		{Fault: 1, Begin: 2500 * at, End: 2500 * at, Lowest: million, Recovered: true},
		{Fault: 2, Begin: 2600 * at, End: 2600 * at, Lowest: million, Recovered: true},
	}
	for i, w := range want {
		if m.Faults[i] != w {
			t.Errorf("fault %d: %+v, want %+v", i, m.Faults[i], w)
		}
	}
}
