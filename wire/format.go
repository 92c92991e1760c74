package wire

// The numbers of the format; docs/protocol.md has the tables they come from. All integers on the
// wire are little-endian.
const (
	typeHeader = 0x4C52
	typeNone   = 0x414E
	typeCookie = 0x4143
	typeAES    = 0x4541

	typeRequest  = 0x5452
	typeResponse = 0x5252
	typeReport   = 0x524C

	headerSize = 40 // of the tenant header that we write; a reader takes larger ones
	tlvSize    = 4  // type, size
	pduSize    = 8  // type, size, word
	countsSize = 4  // two counts

	noneSize   = 4
	cookieSize = 4 + secretSize
	aesSize    = 4 + nonceSize + tagSize
	secretSize = 32
	nonceSize  = 12
	tagSize    = 16

	guardSize1       = 40
	guardSize2       = 36
	resourceSize     = 28
	observationSize1 = 36
	observationSize2 = 32

	labelPrefix = 6 // TLV header and length
)

// TypeLabel is the TLV type of the metrics label in a request (docs/protocol.md, "PDU").
const TypeLabel = 0x4C4D

// Offsets within blocks. What stands behind buffer_size moves with the layout, so those are
// counted from the block's end.
const (
	idSize          = 16
	ttlAt           = 16
	maxSamplesAt    = 20
	bufferSizeAt    = 24 // layout 1 only
	guardMinEnd     = 12
	thresholdEnd    = 8
	latencyEnd      = 4
	reportMinEnd    = 8
	windowAt        = 16
	rateAt          = 20
	tokensAt        = 24
	resourcePadding = 26
)
