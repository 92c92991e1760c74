package apikey

import (
	"errors"
	"strings"
	"testing"
)

// A format of another day may begin with its secret: the byte that stands where
// the version does is not repeated.
func TestUnknownVersionStaysUnsaid(t *testing.T) {
	payload := make([]byte, sizeSecret)
	payload[0] = 219
	_, err := Parse(bech32Encode(AuthAES.prefix(), payload))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "version") {
		t.Fatal(err)
	}
	for _, said := range []string{"219", "db", "DB"} {
		if strings.Contains(err.Error(), said) {
			t.Errorf("%q repeats the byte", err)
		}
	}
}
