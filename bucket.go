package weir

import (
	"math"
	"time"

	"github.com/weirhq/weir/ident"
	"github.com/weirhq/weir/wire"
)

// A RateBucket is a rate limit: at most so many tokens in any window of time.
// Make it with [Bucket], once; it is a value to copy freely. Its content is its
// identity, so two programs that make it of the same name, limit and window mean
// the same bucket, and another limit is another, empty bucket (docs/protocol.md,
// "IDs").
type RateBucket struct {
	name   string
	id     ident.ID
	limit  int
	window time.Duration
}

// Bucket returns the bucket of this name with a limit in tokens per window. The
// name is any bytes. The limit is 0 to 1<<32-1, the window 0 to 1<<32-1 whole
// milliseconds; anything else is reported by the call that uses the bucket, as a
// [*ConfigError]. A limit or a window of 0 never grants a token.
func Bucket(name string, limit int, window time.Duration) RateBucket {
	return RateBucket{
		name:   name,
		id:     ident.Bucket(name, uint32(window.Milliseconds()), uint32(limit)),
		limit:  limit,
		window: window,
	}
}

// Name returns the name that the bucket was made with.
func (b RateBucket) Name() string { return b.name }

// Limit returns the tokens granted in a window.
func (b RateBucket) Limit() int { return b.limit }

// Window returns the length of the window.
func (b RateBucket) Window() time.Duration { return b.window }

// ID returns the identity that clients and servers know the bucket by.
func (b RateBucket) ID() ident.ID { return b.id }

// Take asks for n tokens, 0 to 65535. 0 asks how full the bucket is: it is
// always covered and takes nothing. A number out of range is reported by the
// call that uses the resource.
func (b RateBucket) Take(n int) Resource { return Resource{Bucket: b, Tokens: n} }

// A Resource is a number of tokens wanted from a bucket.
type Resource struct {
	Bucket RateBucket
	Tokens int // 0 to 65535
}

func (r *Resource) encode(i int) (wire.Resource, error) {
	b := &r.Bucket
	if b.id.IsZero() {
		return wire.Resource{}, badBlock("Resources", i, "Bucket", "it is the zero RateBucket; make one with weir.Bucket")
	}
	window, why := milliseconds(b.window)
	if why != "" {
		return wire.Resource{}, badBlock("Resources", i, "Bucket.Window", why)
	}
	if why := count(b.limit, math.MaxUint32); why != "" {
		return wire.Resource{}, badBlock("Resources", i, "Bucket.Limit", why)
	}
	if why := count(r.Tokens, math.MaxUint16); why != "" {
		return wire.Resource{}, badBlock("Resources", i, "Tokens", why)
	}
	return wire.Resource{Bucket: b.id, Window: window, Rate: uint32(b.limit), Tokens: uint16(r.Tokens)}, nil
}
