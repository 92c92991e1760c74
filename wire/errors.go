package wire

import "errors"

// The classes of error that parsing and opening return. Each is a static value; compare with
// [errors.Is]. None carries a byte of the datagram or of a key, and returning one allocates
// nothing, so that a flood of bad datagrams costs no garbage.
var (
	// ErrMalformed is the class of every datagram or PDU that breaks the format (docs/protocol.md:
	// "Tenant header", "Authentication", "PDU", "Layouts"). The concrete error's text says which
	// rule it broke. Drop the datagram.
	ErrMalformed = errors.New("wire: malformed datagram")
	// ErrMode means that a datagram is authenticated in another mode than the key's
	// (docs/protocol.md, "Authentication": each side accepts exactly its key's mode).
	ErrMode = errors.New("wire: the datagram's authentication mode is not the key's; check that both sides use the same key")
	// ErrAuth means that a cookie is not the key's secret, or that an AES-GCM tag does not fit:
	// the datagram was sealed with another key, or was changed on its way.
	ErrAuth = errors.New("wire: the datagram is not authentic; check that both sides use the same key")
)

// The errors of building. Compare with [errors.Is]. All but ErrEntropy, which wraps its cause, are
// static values.
var (
	// ErrTooLarge means that a datagram would be longer than [MaxDatagram]: send fewer blocks, or
	// a shorter label. [RequestSize] and [MaxObservations] tell beforehand.
	ErrTooLarge = errors.New("wire: the datagram would exceed 1200 bytes; send fewer blocks or a shorter label")
	// ErrInvalid is the class of everything else that cannot be built; the concrete error's text
	// names the field.
	ErrInvalid = errors.New("wire: cannot build the datagram")
	// ErrEntropy means that a [Sealer] could not get new bytes from its entropy source. Nothing
	// was sealed.
	ErrEntropy = errors.New("wire: the entropy source failed, so no nonce could be drawn; nothing was sealed")
)

// classError is a concrete error of a class. All of them are package variables.
type classError struct {
	class error
	text  string
}

func (e *classError) Error() string        { return e.text }
func (e *classError) Is(target error) bool { return target == e.class }

func malformed(text string) error {
	return &classError{ErrMalformed, "wire: malformed datagram: " + text}
}

func invalid(text string) error {
	return &classError{ErrInvalid, "wire: cannot build the datagram: " + text}
}

var (
	errDatagramLong = malformed("longer than 1200 bytes")
	errHeaderCut    = malformed("the tenant header is cut short")
	errHeaderType   = malformed("it does not begin with a tenant header")
	errHeaderSize   = malformed("the tenant header's size is below 40 or beyond the datagram")
	errAuthCut      = malformed("the authentication TLV is cut short")
	errAuthType     = malformed("the authentication TLV's type is unknown")
	errAuthSize     = malformed("the authentication TLV's size is not its mode's")

	errPDUCut     = malformed("the PDU is cut short")
	errPDUUnknown = malformed("the PDU's type is unknown")
	errPDUKind    = malformed("the PDU is of another kind than was expected")
	errPDUSize    = malformed("the PDU's size is beyond the datagram")
	errBody       = malformed("the PDU's size does not hold its counts and a run of well-formed TLVs")
	errReportBody = malformed("the report blocks do not fill the PDU in either layout")
	errLabel      = malformed("the metrics label does not fit its TLV")
	errAskLayout  = malformed("the layout to read the response in is neither 1 nor 2")
)

var (
	errCredential   = invalid("the credential is nil or zero; make one with NewCredential")
	errNoKey        = invalid("the key is zero; parse or make one with package apikey")
	errNoLayout     = invalid("Layout is neither 1 nor 2")
	errNoTTL        = invalid("DedupTTL is 0; it is at least 1 ms")
	errNoSealer     = invalid("a key in AES mode needs a sealer; make one with NewSealer, one per goroutine")
	errSealerCopied = invalid("the sealer is a copy or was not made by NewSealer; a copy would repeat nonces")
	errAnswer       = invalid("the answer has another number of latencies, rates or deficits than the request has blocks")
)
