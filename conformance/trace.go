package conformance

// A Trace is one play: a client, its servers, and what happens to whom at which
// instant. Inputs (submit, report, answer, members, dns) are what the client is
// told; outputs (send, decide, fail) are all that it may then do, and must.
type Trace struct {
	Name    string `json:"name"`    // group/case, unique
	About   string `json:"about"`   // what it shows, in a sentence or two
	Section string `json:"section"` // where the rule is written, such as docs/policy.md#rounds

	// Needs names what a client may lack and then cannot play this: "reports",
	// "steering", "refresh", and [NeedDeliveryDelay].
	Needs []string `json:"needs,omitempty"`
	// Auth is the mode of the key: "aes", "cookie", "none", or "any".
	Auth   string  `json:"auth"`
	Layout int     `json:"layout"` // 1 or 2
	Policy Numbers `json:"policy"`

	Servers []Server `json:"servers"` // all that take part, the oldest first
	Members []string `json:"members"` // the names of those that are known at the beginning

	// Real says that the times depend on what no policy scales (TTLs, the second
	// between two changes of port), so that a play in real time keeps them.
	Real bool `json:"real,omitempty"`
	// Margin is the least time between two instants of one request whose order
	// matters. A play in real time stretches it to more than machines are late; 0
	// means that the trace is for virtual time only.
	Margin int64   `json:"margin_ns"`
	Events []Event `json:"events"`
}

// NeedDeliveryDelay is what a client needs for a policy with a delay of completion
// delivery. Clients are taken to lack it unless their hello says that they have it:
// those that are older than it do not know.
const NeedDeliveryDelay = "delivery_delay"

// A Server is one r-server of a trace.
type Server struct {
	Name      string `json:"name"`                // "A", "B", …: A is the oldest
	ID        string `json:"id"`                  // in decimal
	Addresses int    `json:"addresses,omitempty"` // 0 means 1
}

// An Event is one thing that happens. Exactly one of the pointers is set. Events of
// one instant happen in the order in which they stand.
type Event struct {
	At int64 `json:"at_ns"` // since the beginning

	Submit  *Submit  `json:"submit,omitempty"`
	Report  *Report  `json:"report,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`
	Members *Members `json:"members,omitempty"`
	DNS     *Zone    `json:"dns,omitempty"`

	Send   *Send   `json:"send,omitempty"`
	Decide *Decide `json:"decide,omitempty"`
	Fail   *Fail   `json:"fail,omitempty"`
}

// Output reports whether the event is something that the client does.
func (e *Event) Output() bool { return e.Send != nil || e.Decide != nil || e.Fail != nil }

// Submit asks for a decision. In a play the request's label is its ID, so that a
// datagram tells whose it is.
type Submit struct {
	ID        string     `json:"id"`
	Guards    []Guard    `json:"guards,omitempty"`
	Resources []Resource `json:"resources,omitempty"`
}

// A Guard is a latency guard, in milliseconds and samples. The tracker is a name.
type Guard struct {
	Tracker    string `json:"tracker"`
	TTL        uint32 `json:"ttl_ms"`
	MaxSamples uint32 `json:"max_samples"`
	BufferSize uint32 `json:"buffer_size,omitempty"` // of layout 1 only
	MinSamples uint32 `json:"min_samples"`
	Threshold  uint32 `json:"threshold_ms"`
}

// A Resource is a number of tokens of a bucket. The bucket is a name.
type Resource struct {
	Bucket string `json:"bucket"`
	Window uint32 `json:"window_ms"`
	Limit  uint32 `json:"limit"`
	Tokens uint16 `json:"tokens"`
}

// Report sends observations.
type Report struct {
	ID           string        `json:"id"`
	Observations []Observation `json:"observations"`
}

// An Observation is one measured latency.
type Observation struct {
	Tracker    string `json:"tracker"`
	TTL        uint32 `json:"ttl_ms"`
	MaxSamples uint32 `json:"max_samples"`
	BufferSize uint32 `json:"buffer_size,omitempty"` // of layout 1 only
	MinSamples uint32 `json:"min_samples"`
	Latency    uint32 `json:"latency_ms"`
}

// An Answer is a response that the client receives.
type Answer struct {
	From string `json:"from"`          // the server whose ID it carries
	Of   string `json:"of"`            // the request
	Via  string `json:"via,omitempty"` // the server from whose address it comes, if not From

	ChangePort bool `json:"change_port,omitempty"` // steering_feedback is 0, else 1
	// Deficit is that of every resource, Latency the estimate of every guard, in an
	// answer that repeats the request's blocks.
	Deficit uint16 `json:"deficit,omitempty"`
	Latency uint32 `json:"latency_ms,omitempty"`
	// Blocks, if set, is what is in it instead.
	Blocks *Blocks `json:"blocks,omitempty"`
	Layout int     `json:"layout,omitempty"` // of Blocks; 0 means 2
	// Damage is what is done to the good response then; README.md lists them.
	Damage string `json:"damage,omitempty"`

	// Counts is what a client makes of it: "counted", "late", "duplicate" (all valid,
	// only the first takes part in the decision) or "ignored".
	Counts string `json:"counts"`
}

// Blocks are the contents of an answer.
type Blocks struct {
	Guards    []GuardAnswer    `json:"guards,omitempty"`
	Resources []ResourceAnswer `json:"resources,omitempty"`
}

// GuardAnswer is a guard's block in an answer.
type GuardAnswer struct {
	Guard
	Latency uint32 `json:"latency_ms"`
}

// ResourceAnswer is a resource's block in an answer.
type ResourceAnswer struct {
	Resource
	Deficit uint16 `json:"deficit"`
}

// Members replaces the servers that the client knows, as if discovery had just
// found them.
type Members struct {
	Servers []string `json:"servers"`
}

// A Zone is what DNS says from now on.
type Zone struct {
	TTL     int      `json:"ttl_s"` // of every record
	Fails   bool     `json:"fails,omitempty"`
	Records []Target `json:"srv"`
}

// A Target is an SRV record, and the addresses of the host that it names.
type Target struct {
	Label string `json:"label"` // the first label of the host's name; the rest is the domain
	// At is the server that is there: its port, and its addresses.
	At string `json:"at"`
	// Addresses are other addresses in the place of the server's.
	Addresses []string `json:"addresses,omitempty"`
	PortZero  bool     `json:"port_zero,omitempty"` // the record names port 0
}

// A Send is a datagram that the client sends.
type Send struct {
	Request string `json:"request,omitempty"`
	Report  string `json:"report,omitempty"`
	To      string `json:"to"`
	Address int    `json:"address,omitempty"` // which of the server's
	Why     string `json:"why"`               // "first", "replay", "delivery" or "report"
	// Port counts the changes of the source port before it: sends with one number
	// have one port. It is there in traces with change_port only.
	Port *int `json:"port,omitempty"`
}

// Decide is a decision that the client returns.
type Decide struct {
	Request string `json:"request"`
	Granted bool   `json:"granted"`
	By      string `json:"by,omitempty"` // empty for a request for nothing
}

// Fail is a request that ends without a decision.
type Fail struct {
	Request string `json:"request"`
	Reason  string `json:"reason"` // "timeout" or "no_servers"
}
