package wire

// ResponseView is a response as it was received: a view into the bytes that were given to
// [ParseResponse], valid as long as they are. In its resources, Rate is the actual rate and Tokens
// the deficit.
type ResponseView struct {
	frame
	blocks
}

// ParseResponse reads a response's PDU into v, in the layout of the request that it answers
// (docs/protocol.md, "PDU", "Layouts"). Bytes behind the PDU, unknown TLVs, the word and padding
// are ignored. Whether it answers the question is not judged here. An error is of class
// [ErrMalformed], and v is then zero. It does not allocate.
func ParseResponse(pdu []byte, l Layout, v *ResponseView) error {
	*v = ResponseView{}
	if l != Layout1 && l != Layout2 {
		return errAskLayout
	}
	f, err := parseFrame(pdu, KindResponse)
	if err != nil {
		return err
	}
	var b blocks
	if !b.split(f.body(), l) {
		return errBody
	}
	v.frame, v.blocks = f, b
	return nil
}
