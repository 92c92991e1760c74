package core

// Stats is what a core counted since New. Gauges are of now.
type Stats struct {
	Submitted uint64                 // requests accepted, those for nothing included
	Empty     uint64                 // requests for nothing
	Canceled  uint64                 // by Cancel
	Outcomes  [SendFailed + 1]uint64 // completions by [Outcome]
	Decided   Decided                // those that a server decided, by how it came to that
	Sent      [SendKinds]uint64      // datagrams that PollSend gave out, by [SendKind]
	// SendFailures counts datagrams that could not be sent, by [SendKind].
	SendFailures [SendKinds]uint64
	Datagrams    [DatagramVerdicts]uint64 // received, by [DatagramVerdict]

	Observations        uint64 // observations encoded into reports
	ObservationsLeftOut uint64 // of layout 1, over the key's quota

	Advice uint64 // valid answers that advised another port
	Steers uint64 // EventSteer

	Refreshes         uint64 // discoveries begun
	RefreshFailures   uint64 // that failed, wholly or for some targets
	MembershipChanges uint64 // for later requests
	// What discovery did not take, summed over all refreshes.
	Skipped Skipped

	// Of failing fast ([FailFastConfig]). Probes are no requests, but datagrams
	// that are theirs are in Sent, SendFailures and Datagrams.
	FailFastTrips uint64 // how often it began
	FailedFast    uint64 // Submit failed with ErrFailFast
	Probes        uint64 // begun
	FailingFast   bool   // gauge

	InFlight int // gauge: undecided requests
	Kept     int // gauge: identities of ended requests, until their horizon
}

// Decided counts the decisions of servers, granted or rejected, in two ways: by
// when the deciding answer came, and by whose it was. Each of the two adds up to
// all of them.
type Decided struct {
	InRound    [DecidedRounds]uint64 // in this round; the last one counts all later rounds too
	InFinal    uint64                // in the final interval
	ByOldest   uint64                // by the oldest server of those asked
	ByFallback uint64                // by another
}

// DecidedRounds is how many rounds [Decided] tells apart.
const DecidedRounds = 8

// count counts the end of a request, if a server decided it.
func (d *Decided) count(f *flight, final int) {
	if f.outcome != Granted && f.outcome != Rejected {
		return
	}
	if f.candidateRound == final {
		d.InFinal++
	} else {
		d.InRound[min(f.candidateRound, DecidedRounds-1)]++
	}
	if f.candidate == 0 {
		d.ByOldest++
	} else {
		d.ByFallback++
	}
}

// Stats returns what the core counted.
func (c *Core) Stats() Stats {
	s := c.stats
	s.InFlight = c.inFlight
	s.Kept = c.table.used - c.inFlight
	if c.failFast.probe != nil {
		s.Kept--
	}
	s.FailingFast = c.failFast.failing
	return s
}
