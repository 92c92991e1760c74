package apikey

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The test vectors of BIP-173. The last valid string but one is over the BIP's
// limit of 90 characters, which API keys do not have.
func TestBIP173Valid(t *testing.T) {
	for _, s := range []string{
		"A12UEL5L",
		"a12uel5l",
		"an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
		"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
		"11qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqc8247j",
		"split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
		"?1ezyfcl",
		"an84characterslonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1569pvx",
	} {
		hrp, digits, err := bech32Split(s)
		if err != nil {
			t.Errorf("bech32Split(%q): %v", s, err)
			continue
		}
		var again strings.Builder
		again.WriteString(hrp + "1")
		for _, d := range digits {
			again.WriteByte(bech32Charset[d])
		}
		if want := strings.ToLower(s[:len(s)-bech32Checksum]); again.String() != want {
			t.Errorf("bech32Split(%q) reads %q", s, again.String())
		}
	}
}

func TestBIP173Invalid(t *testing.T) {
	for _, c := range []struct{ text, say string }{
		{"\x201nwldj5", "character 1 is a blank"},
		{"\x7f1axkwrx", "character 1 is a blank"},
		{"\x801eym55h", "character 1 is a blank"},
		{"pzry9x0s0muk", "no prefix"},
		{"1pzry9x0s0muk", "no prefix"},
		{"x1b4n0q5v", "character 3 is not in the Bech32 set"},
		{"li1dgmt3", "too short"},
		{"de1lg7wt\xff", "character 9 is a blank"},
		{"A1G7SGD8", "checksum"},
		{"10a06t8", "no prefix"},
		{"1qzzfhee", "no prefix"},
		{"a12UEL5L", "mixes"},
		// Bech32m, which keys are not in.
		{"a1lqfn3a", "checksum"},
	} {
		_, _, err := bech32Split(c.text)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("bech32Split(%q): error %v, want one that says %q", c.text, err, c.say)
		}
	}
}

// TestBIP173Payloads regroups the witness programs of the BIP's addresses, whose
// first character is a version and no part of the payload.
func TestBIP173Payloads(t *testing.T) {
	for _, c := range []struct{ address, payload string }{
		{"BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "751e76e8199196d454941c45d1b3a323f1433bd6"},
		{"tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7", "1863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262"},
		{"BC1SW50QA3JX3S", "751e"},
	} {
		_, digits, err := bech32Split(c.address)
		if err != nil {
			t.Errorf("bech32Split(%q): %v", c.address, err)
			continue
		}
		payload, err := fromDigits(digits[1:])
		if err != nil || hex.EncodeToString(payload) != c.payload {
			t.Errorf("%s: payload %x, %v; want %s", c.address, payload, err, c.payload)
		}
	}
	for _, c := range []struct{ address, say string }{
		{"bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du", "a character too many"},
		{"tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3pjxtptv", "unused bits"},
	} {
		_, digits, err := bech32Split(c.address)
		if err != nil {
			t.Errorf("bech32Split(%q): %v", c.address, err)
			continue
		}
		if _, err := fromDigits(digits[1:]); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: error %v, want one that says %q", c.address, err, c.say)
		}
	}
}

func TestBech32RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "payload")
		s := bech32Encode("rl-aes", payload)
		hrp, digits, err := bech32Split(s)
		if err != nil || hrp != "rl-aes" {
			t.Fatalf("bech32Split(%q) = %q, %v", s, hrp, err)
		}
		back, err := fromDigits(digits)
		if err != nil || !bytes.Equal(back, payload) {
			t.Fatalf("%x came back as %x, %v", payload, back, err)
		}
	})
}

// TestBech32Detects changes up to four characters of a string, which the
// checksum always detects at this length and far beyond.
func TestBech32Detects(t *testing.T) {
	s := bech32Encode("rl-aes", bytes.Repeat([]byte{7}, sizeSecret))
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(s)
		changed := rapid.SliceOfNDistinct(rapid.IntRange(len("rl-aes1"), len(b)-1), 1, 4, rapid.ID).Draw(t, "positions")
		for _, i := range changed {
			shift := rapid.IntRange(1, 31).Draw(t, "shift")
			b[i] = bech32Charset[(int(bech32Digit[b[i]])+shift)%32]
		}
		if _, _, err := bech32Split(string(b)); err == nil {
			t.Fatalf("%s passed for %s", b, s)
		}
	})
}
