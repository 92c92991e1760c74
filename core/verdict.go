package core

import "strconv"

// DatagramVerdict is what [Core.HandleDatagram] made of a datagram. Only a
// counted one takes part in a decision.
type DatagramVerdict uint8

// The verdicts. The first three are valid answers, whose steering advice is
// heard; the others are not, and leave their request as it was.
const (
	DatagramCounted   DatagramVerdict = iota // the first answer of a server, in time
	DatagramLate                             // the first answer of a server, after the request ended and before its horizon
	DatagramDuplicate                        // a further answer of a server
	DatagramExpired                          // names a request whose horizon has just passed, before the timer was handled
	DatagramMalformed                        // breaks the format
	DatagramMode                             // authenticated in another mode than the key's
	DatagramUnknown                          // names no request that is known; one is forgotten at its horizon
	DatagramForged                           // names a request but is not authentic: another key, or damage
	DatagramNotAnswer                        // authentic, but a request or report, such as a reflected one of our own
	DatagramStranger                         // from a server that was not asked
	DatagramMismatch                         // does not answer what was asked

	// DatagramVerdicts is how many verdicts there are.
	DatagramVerdicts = iota
)

var verdictNames = [DatagramVerdicts]string{
	"counted", "late", "duplicate", "expired", "malformed", "mode", "unknown", "forged", "not an answer", "stranger", "mismatch",
}

// String returns the verdict in a word or three.
func (v DatagramVerdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "DatagramVerdict(" + strconv.Itoa(int(v)) + ")"
}

// Valid reports whether the datagram was a valid answer, counted or not.
func (v DatagramVerdict) Valid() bool { return v <= DatagramDuplicate }
