package core

// Stats is what a core counted since New. Gauges are of now.
type Stats struct {
	Submitted uint64                 // requests accepted, those for nothing included
	Empty     uint64                 // requests for nothing
	Canceled  uint64                 // by Cancel
	Outcomes  [SendFailed + 1]uint64 // completions by [Outcome]
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

	InFlight int // gauge: undecided requests
	Kept     int // gauge: identities of ended requests, until their horizon
}

// Stats returns what the core counted.
func (c *Core) Stats() Stats {
	s := c.stats
	s.InFlight = c.inFlight
	s.Kept = c.table.used - c.inFlight
	return s
}
