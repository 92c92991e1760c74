package sim

import (
	"net/netip"
	"time"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/core"
	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/limiter"
)

// RecordKind is what a record tells. The zero value is none.
type RecordKind uint8

// The kinds of records, and which fields of [Record] they fill besides At.
const (
	// RecordSubmit: a client made a request. Client, Request, Choice, Policy's horizon in Elapsed;
	// Err if it was refused at once, and then nothing more follows. Its membership is Servers.
	RecordSubmit RecordKind = 1 + iota
	// RecordSend: a client sent a datagram. Client, Request (0 for a report and for a probe of failing
	// fast), Send, Round, Server (-1: nobody's address), Port, Payload.
	RecordSend
	// RecordLost: a datagram, or an answer if Answer is set, did not arrive, by Cause. Client, Server,
	// Request, Send, Copy.
	RecordLost
	// RecordArrive: a datagram reached a server's receive queue. Client, Server, Request, Send, Copy,
	// Worker, Queue, Payload. RecordServe follows, or RecordLost with LostKilled.
	RecordArrive
	// RecordServe: a server's worker handled a datagram, at the instant that its engine was told. Client,
	// Server, Request, Send, Copy, Payload, Verdict; Late if it was dropped because it had waited for longer
	// than its dedup TTL; Keep is its answer's steering.
	RecordServe
	// RecordResponse: an answer reached a client. Client, Server, Request, Copy, Received, Granted, Keep,
	// and in Port where it came in.
	RecordResponse
	// RecordDecide: a request was decided, or nothing was sent or answered: Client, Request,
	// Completion, Granted.
	RecordDecide
	// RecordSteer: a client replaced its port. Client, Port.
	RecordSteer
	// RecordLookup: a client looks something up. Client, Lookup.
	RecordLookup
	// RecordMembership: a client's membership changed. Client, Servers.
	RecordMembership
	// RecordDiscoveryFailed: a client's refresh failed. Client, Err.
	RecordDiscoveryFailed
	// RecordWork: granted work began to wait, Client, Request, Service; RecordWorked: it ended after
	// Elapsed; Refused if it found no place.
	RecordWork
	RecordWorked
	// RecordReport: a client reports Elapsed. Client, Service.
	RecordReport
	// RecordServer: a server starts (Up) or ends, at the latest with the run. Server, ID; when it ends,
	// Engine.
	RecordServer
	// RecordFault: a fault begins (Up) or ends. Fault.
	RecordFault
	// RecordRun: a run begins, before everything else. Key.
	RecordRun
)

// Cause is why a datagram did not arrive.
type Cause uint8

// The causes.
const (
	LostLink      Cause = 1 + iota // by the link's chance
	LostBurst                      // in a burst of loss
	LostPartition                  // in a partition
	LostQueue                      // the receive queue was full
	LostDead                       // nobody was there
	LostSocket                     // the client's socket was closed
	LostKilled                     // it waited at a server that ended
)

// A Record is something that happened, in the order in which it did. It and what it points to are
// valid during the call only.
type Record struct {
	At     time.Duration
	Kind   RecordKind
	Client int // an index into the run's clients
	Server int // an index into Scenario.Servers
	ID     ident.ServerID
	// Request counts the logical requests of the run from 1; 0 is none.
	Request    uint64
	Choice     int           // an index into the client's Mix
	Send       core.SendKind // of the datagram
	Round      int
	Copy       int // 1 for what the network made of 0 by duplication
	Answer     bool
	Cause      Cause
	Worker     int
	Queue      int // datagrams in the queue, this one included
	Port       netip.AddrPort
	Payload    []byte // the datagram
	Verdict    limiter.Verdict
	Late       bool
	Keep       bool
	Received   core.DatagramVerdict
	Granted    bool
	Completion *core.Completion
	Lookup     *core.Lookup
	Servers    []core.Server // oldest first
	Elapsed    time.Duration
	Service    int // an index into Scenario.Services
	Refused    bool
	Up         bool
	Fault      int // an index into Scenario.Faults
	Engine     *limiter.Stats
	Key        apikey.Key // what the run's datagrams are sealed with
	Err        error
}

// A Recorder takes what happened in a run.
type Recorder interface {
	// Record is called for every record in order. It keeps nothing of r.
	Record(r *Record)
}
