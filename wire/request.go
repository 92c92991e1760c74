package wire

// RequestView is a resource request as it was received: a view into the bytes that were given to
// [ParseRequest], valid as long as they are.
type RequestView struct {
	frame
	blocks

	// DedupTTL is how long a server remembers the answer, in milliseconds. 0 is no TTL that a
	// client may send; parsing leaves it to the server to drop.
	DedupTTL uint32
	// Layout is the layout that the lengths tell; [Layout2] when there are no guards, since the
	// layouts then coincide.
	Layout Layout

	label []byte
}

// ParseRequest reads a request's PDU into v, telling the layout from the lengths
// (docs/protocol.md, "PDU", "Layouts"). Bytes behind the PDU are ignored. An error is of class
// [ErrMalformed], and v is then zero. It does not allocate.
func ParseRequest(pdu []byte, v *RequestView) error {
	*v = RequestView{}
	f, err := parseFrame(pdu, KindRequest)
	if err != nil {
		return err
	}
	b, ok := detect(f.body())
	if !ok {
		return errBody
	}
	label, err := findLabel(b.rest)
	if err != nil {
		return err
	}
	v.frame, v.blocks, v.label = f, b, label
	v.DedupTTL = f.Word()
	v.Layout = b.layout
	return nil
}

// Label returns the metrics label, nil if there is none. It is a view of hostile bytes: make them
// safe before they are shown anywhere.
func (v *RequestView) Label() []byte { return v.label }

// detect tells the layout of a request's body. Ordinary requests can fit both, because a rate, a
// window or a count of tokens can look like a TLV; so among the layouts that fit, one whose unused
// fields are all 0 is preferred, and then layout 2. A rest that is well formed but holds a broken
// label fits: the request is then malformed, not of the other layout.
func detect(body []byte) (blocks, bool) {
	var two, one blocks
	fits2 := two.split(body, Layout2)
	if fits2 && two.blank() {
		return two, true
	}
	fits1 := one.split(body, Layout1)
	if fits1 && one.blank() {
		return one, true
	}
	if fits2 {
		return two, true
	}
	return one, fits1
}
